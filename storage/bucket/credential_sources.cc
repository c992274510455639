// Each source fails with its own name in the sentence: with six of them, "access denied" alone
// would leave the reader guessing which one was asked.
#include "storage/bucket/credential_sources.h"

#include <rapidjson/document.h>
#include <unistd.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/base/address.h"
#include "proto/base/checked_file.h"
#include "proto/base/status_macros.h"
#include "storage/bucket/bucket_address.h"
#include "storage/bucket/bucket_answers.h"
#include "storage/bucket/profile_file.h"

namespace tacho::storage {
namespace {

constexpr absl::Duration kLocalPatience = absl::Seconds(2);  // Metadata servers answer in ms.
constexpr absl::Duration kStsPatience = absl::Seconds(5);
constexpr size_t kMaxTokenBytes = size_t{64} << 10;

absl::Status Denied(absl::string_view source, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("credentials from ", source, ": ", why));
}

// A status of 500 and above may be another one soon.
absl::Status Refused(absl::string_view source, const HttpReply& reply) {
  if (reply.failure != HttpFailure::kNone) {
    return absl::UnavailableError(absl::StrCat("credentials from ", source, ": ", reply.error));
  }
  const ErrorAnswer error = ParseErrorAnswer(reply.body);
  const std::string text = absl::StrCat("credentials from ", source, ": it answers ", reply.status,
                                        error.code.empty() ? "" : " ", error.code,
                                        error.message.empty() ? "" : ": ", error.message);
  if (reply.status >= 500 || reply.status == 429) return absl::UnavailableError(text);
  return absl::PermissionDeniedError(text);
}

// Nobody is there, as on a machine outside that cloud.
bool IsAbsent(const HttpReply& reply) {
  return reply.failure == HttpFailure::kNotSent || reply.failure == HttpFailure::kSlow;
}

absl::Duration LifetimeUntil(const std::string& expiration) {
  absl::Time end;
  std::string why;
  if (!absl::ParseTime(absl::RFC3339_full, expiration, &end, &why)) {
    return absl::InfiniteDuration();
  }
  // The service names a time of day. This is the one moment at which ours is compared with it:
  // where ours is wrong, it refuses our signatures anyway.
  return std::max(end - absl::Now(), absl::ZeroDuration());
}

// The first line of a body: more would become headers of their own.
absl::string_view FirstLine(absl::string_view body) {
  return absl::StripAsciiWhitespace(body.substr(0, body.find_first_of("\r\n")));
}

absl::StatusOr<std::string> ReadToken(absl::string_view source, const std::string& path) {
  auto text = config::ReadCheckedFile(path, config::FileTrust::kTrusted, kMaxTokenBytes);
  if (!text.ok()) return Denied(source, text.status().message());
  return std::string(absl::StripAsciiWhitespace(*text));
}

absl::StatusOr<Credentials> FromProfile(const Profile& profile, const std::string& source) {
  const auto setting = [&](const char* name) {
    const auto found = profile.find(name);
    return found == profile.end() ? std::string() : found->second;
  };
  Credentials found{.key_id = setting("aws_access_key_id"),
                    .secret = setting("aws_secret_access_key"),
                    .session_token = setting("aws_session_token"),
                    .source = source};
  if (!found.key_id.empty() && !found.secret.empty()) return found;
  for (const char* other : {"role_arn", "sso_session", "sso_start_url", "credential_process"}) {
    if (profile.count(other) == 0) continue;
    return Denied(source, absl::StrCat("it has ", other,
                                       ", which is not possible here; put aws_access_key_id and "
                                       "aws_secret_access_key there, or use another source"));
  }
  return absl::NotFoundError(absl::StrCat(source,
                                          " has no aws_access_key_id and "
                                          "aws_secret_access_key"));
}

// NOT_FOUND: no such file, no such profile, or one without keys.
absl::StatusOr<Credentials> FromProfileOf(const std::string& path, const std::string& name) {
  const std::string source = absl::StrCat(path, " (profile ", name, ")");
  auto text = config::ReadCheckedFile(path, config::FileTrust::kSecret);
  if (absl::IsNotFound(text.status())) return text.status();
  if (!text.ok()) return Denied(source, text.status().message());
  const auto profiles = ParseProfiles(*text);
  const auto profile = profiles.find(name);
  if (profile == profiles.end()) {
    return absl::NotFoundError(absl::StrCat(path, " has no profile ", name));
  }
  return FromProfile(profile->second, source);
}

std::string ProfileName(const CredentialWorld& world) {
  return world.Has("AWS_PROFILE") ? world.Variable("AWS_PROFILE") : "default";
}

// The token goes there in clear text: to this machine, or to the addresses that ECS and EKS use.
bool IsContainerHost(const std::string& url) {
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "https://")) return true;
  if (!absl::ConsumePrefix(&rest, "http://")) return false;
  rest = rest.substr(0, rest.find('/'));
  const std::string host = config::HostOf(rest);
  return config::IsLoopback(rest) || host == "169.254.170.2" || host == "169.254.170.23" ||
         host == "fd00:ec2::23";
}

}  // namespace

std::string CredentialWorld::Variable(const char* name) const {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<Credentials> FromEnvironment(const CredentialWorld& world) {
  const char* source = "the environment (AWS_ACCESS_KEY_ID)";
  Credentials found{.key_id = world.Variable("AWS_ACCESS_KEY_ID"),
                    .secret = world.Variable("AWS_SECRET_ACCESS_KEY"),
                    .session_token = world.Variable("AWS_SESSION_TOKEN"),
                    .source = source};
  if (found.key_id.empty() || found.secret.empty()) {
    return Denied(source, "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  }
  return found;
}

absl::StatusOr<Credentials> FromWebIdentity(const CredentialWorld& world) {
  const char* source = "the web identity (AWS_ROLE_ARN)";
  const std::string path = world.Variable("AWS_WEB_IDENTITY_TOKEN_FILE");
  if (path.empty() || !world.Has("AWS_ROLE_ARN")) {
    return Denied(source, "set both AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE");
  }
  TACHO_ASSIGN_OR_RETURN(const std::string token, ReadToken(source, path));
  std::string session = world.Variable("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "tachograph";
  std::string endpoint = world.Variable("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = absl::StrCat("https://sts.", world.region, ".amazonaws.com");
  const std::string form = absl::StrCat(
      "Action=AssumeRoleWithWebIdentity&RoleArn=", EscapeQuery(world.Variable("AWS_ROLE_ARN")),
      "&RoleSessionName=", EscapeQuery(session),
      "&Version=2011-06-15&WebIdentityToken=", EscapeQuery(token));
  const HttpReply reply =
      world.http->Send({.method = "POST",
                        .url = absl::StrCat(absl::StripSuffix(endpoint, "/"), "/"),
                        .headers = {"Content-Type: application/x-www-form-urlencoded"},
                        .body = form,
                        .patience = kStsPatience,
                        .quick = true});
  if (reply.status != 200) return Refused(source, reply);
  const auto role = ParseAssumedRole(reply.body);
  if (!role.ok()) return Denied(source, role.status().message());
  return Credentials{.key_id = role->key_id,
                     .secret = role->secret,
                     .session_token = role->session_token,
                     .source = source,
                     .lifetime = LifetimeUntil(role->expiration)};
}

absl::StatusOr<Credentials> FromSharedFiles(const CredentialWorld& world) {
  const std::string home = absl::StrCat(world.Variable("HOME"), "/.aws/");
  const std::string name = ProfileName(world);
  std::vector<std::string> missing;
  for (const auto& [variable, file] :
       {std::pair("AWS_SHARED_CREDENTIALS_FILE", "credentials"), {"AWS_CONFIG_FILE", "config"}}) {
    const std::string path =
        world.Has(variable) ? world.Variable(variable) : absl::StrCat(home, file);
    auto found = FromProfileOf(path, name);
    if (!absl::IsNotFound(found.status())) return found;
    missing.emplace_back(found.status().message());
  }
  const std::string text = absl::StrJoin(missing, "; ");
  if (world.Has("AWS_PROFILE")) {
    return Denied(absl::StrCat("profile ", name, " (AWS_PROFILE)"), text);
  }
  return absl::NotFoundError(text);
}

absl::StatusOr<Credentials> FromFile(const CredentialWorld& world, const std::string& path) {
  auto found = FromProfileOf(path, ProfileName(world));
  if (absl::IsNotFound(found.status())) return Denied(path, found.status().message());
  return found;
}

absl::StatusOr<Credentials> FromContainer(const CredentialWorld& world) {
  const char* source = "the container (AWS_CONTAINER_CREDENTIALS_…_URI)";
  std::string url = world.Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!url.empty()) {
    url = absl::StrCat("http://169.254.170.2", url);
  } else {
    url = world.Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  }
  if (!IsContainerHost(url)) {
    return Denied(source, absl::StrCat("'", url,
                                       "' is neither https nor an address of this "
                                       "machine, of ECS or of EKS"));
  }
  HttpCall call{.url = url, .patience = kLocalPatience, .quick = true, .direct = true};
  std::string token = world.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string path = world.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !path.empty()) {
    TACHO_ASSIGN_OR_RETURN(token, ReadToken(source, path));
  }
  if (token.find_first_of("\r\n") != std::string::npos) {
    return Denied(source, "its authorization token has more than one line");
  }
  if (!token.empty()) call.headers.push_back(absl::StrCat("Authorization: ", token));
  const HttpReply reply = world.http->Send(call);
  if (reply.status != 200) return Refused(source, reply);
  return ParseJsonCredentials(reply.body, source);
}

absl::StatusOr<Credentials> FromInstance(const CredentialWorld& world) {
  const char* source = "the instance's metadata (IMDSv2)";
  if (absl::EqualsIgnoreCase(world.Variable("AWS_EC2_METADATA_DISABLED"), "true")) {
    return absl::NotFoundError("AWS_EC2_METADATA_DISABLED is true");
  }
  std::string root = world.Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (root.empty()) root = "http://169.254.169.254";
  root = absl::StrCat(absl::StripSuffix(root, "/"), "/latest/");
  HttpCall call{.method = "PUT",
                .url = absl::StrCat(root, "api/token"),
                .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"},
                .patience = kLocalPatience,
                .quick = true,
                .direct = true};
  const HttpReply token = world.http->Send(call);
  if (IsAbsent(token)) return absl::NotFoundError("no EC2 instance's metadata answers");
  if (token.status != 200) return Refused(source, token);
  call.method = "GET";
  call.headers = {absl::StrCat("X-aws-ec2-metadata-token: ", FirstLine(token.body))};
  call.url = absl::StrCat(root, "meta-data/iam/security-credentials/");
  const HttpReply role = world.http->Send(call);
  if (role.status == 404) return absl::NotFoundError("this EC2 instance has no role");
  if (role.status != 200) return Refused(source, role);
  const absl::string_view name = FirstLine(role.body);
  absl::StrAppend(&call.url, EscapeQuery(name));
  const HttpReply reply = world.http->Send(call);
  if (reply.status != 200) return Refused(source, reply);
  return ParseJsonCredentials(reply.body, absl::StrCat(source, ", role ", name));
}

absl::StatusOr<Credentials> FromGoogleMetadata(const CredentialWorld& world) {
  const char* source = "Google's metadata server";
  std::string host = world.Variable("GCE_METADATA_HOST");
  if (host.empty()) host = "metadata.google.internal";
  const HttpReply reply = world.http->Send(
      {.url = absl::StrCat("http://", host,
                           "/computeMetadata/v1/instance/service-accounts/default/token"),
       .headers = {"Metadata-Flavor: Google"},
       .patience = kLocalPatience,
       .quick = true,
       .direct = true});
  if (IsAbsent(reply)) return absl::NotFoundError("no metadata server of Google answers");
  if (reply.status != 200) return Refused(source, reply);
  if (reply.Header("metadata-flavor") != "Google") {
    return Denied(source, absl::StrCat(host,
                                       " is another server: it does not say "
                                       "Metadata-Flavor: Google"));
  }
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(reply.body.data(), reply.body.size());
  if (json.HasParseError() || !json.IsObject() || !json.HasMember("access_token") ||
      !json["access_token"].IsString()) {
    return Denied(source, "the answer has no access_token");
  }
  Credentials found{.bearer = json["access_token"].GetString(), .source = source};
  if (found.bearer.find_first_of("\r\n") != std::string::npos) {
    return Denied(source, "the access_token has more than one line");
  }
  if (json.HasMember("expires_in") && json["expires_in"].IsInt64()) {
    found.lifetime = absl::Seconds(json["expires_in"].GetInt64());
  }
  return found;
}

absl::StatusOr<Credentials> ParseJsonCredentials(absl::string_view body, std::string source) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  if (json.HasParseError() || !json.IsObject())
    return Denied(source, "the answer is no JSON object");
  const auto member = [&](const char* name) {
    return json.HasMember(name) && json[name].IsString()
               ? std::string(json[name].GetString(), json[name].GetStringLength())
               : std::string();
  };
  Credentials found{.key_id = member("AccessKeyId"),
                    .secret = member("SecretAccessKey"),
                    .session_token = member("Token"),
                    .lifetime = LifetimeUntil(member("Expiration"))};
  for (const std::string* text : {&found.key_id, &found.secret, &found.session_token}) {
    if (text->find_first_of("\r\n\0", 0, 3) != std::string::npos) {
      return Denied(source, "the answer has a key of more than one line");
    }
  }
  if (found.key_id.empty() || found.secret.empty()) {
    return Denied(source, "the answer has no AccessKeyId and SecretAccessKey");
  }
  found.source = std::move(source);
  return found;
}

}  // namespace tacho::storage
