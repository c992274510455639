"""The list of an image's contents: SPDX 2.3 as JSON."""
import hashlib
import json
import re
import urllib.parse

import debian_parts


def _id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def _debian_package(name, version, architecture, source):
    quoted = urllib.parse.quote(version, safe="")
    return {
        "SPDXID": _id("deb-" + name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "comment": f"/usr/share/doc/{name}/copyright in the image has its licence",
        "sourceInfo": f"built from Debian's source package {source}",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{urllib.parse.quote(name)}@{quoted}?arch={architecture}&distro=debian-12",
        }],
    }  # fmt: skip


def _own_package(name, version, files):
    """The package that contains `files`. SPDX wants a verification code for such a package: the SHA-1 of the
    files' sorted SHA-1s."""
    digests = sorted(one["checksumValue"] for file in files for one in file["checksums"] if one["algorithm"] == "SHA1")
    return {
        "SPDXID": _id(name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Tachograph",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {
            "packageVerificationCodeValue": hashlib.sha1("".join(digests).encode()).hexdigest(),
        },
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": "CONTAINER",
    }


def _file(name, data):
    return {
        "SPDXID": _id("file-" + name),
        "fileName": "./usr/bin/" + name,
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()},
        ],
        "licenseConcluded": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }


def spdx(name, version, created, programs, packages):
    """The document's bytes; the same for the same contents. `programs` are {name: content}."""
    files = [_file(*program) for program in programs.items()]
    parts = [_debian_package(*package) for package in debian_parts.versions(packages)]
    own = _own_package(name, version, files)
    contained = [part["SPDXID"] for part in files + parts]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "creationInfo": {"created": created, "creators": ["Tool: tachograph-deploy-oci"]},
        "documentDescribes": [own["SPDXID"]],
        "packages": [own, *parts],
        "files": files,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
             "relatedSpdxElement": own["SPDXID"]},
            *({"spdxElementId": own["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": one}
              for one in contained),
        ],
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["documentNamespace"] = f"https://spdx.org/spdxdocs/{name}-{version}-{digest[:32]}"
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
