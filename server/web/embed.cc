// Runs while the collector is built: writes the files of its page, packed, as a C++ source. g++ 12
// has no #embed, and neither the scan for dependencies nor clang-tidy sees through .incbin.
//
//   tacho_embed OUTPUT FILE=PATH...
//
// PATH is where the page asks for the file, below /ui/. Equal files give an equal source.
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "server/web/file_types.h"

namespace {

// Names such as app-XQA5S3UF.js change with what is in the file.
bool HasHash(const std::string& path) {
  constexpr size_t kHash = 8;
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot < kHash + 1 || path[dot - kHash - 1] != '-') return false;
  return path.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", dot - kHash) == dot;
}

// FNV-1a: tells two states of one file apart; nobody gains by a collision.
std::string Etag(const std::string& bytes) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  char text[32];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// gzip without a name and without a time, at zlib's highest level.
std::optional<std::string> Pack(const std::string& bytes) {
  constexpr int kGzip = 16;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 9,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return packed;
}

void WriteBytes(const std::string& bytes, std::ostream& out) {
  constexpr size_t kOnALine = 24;
  for (size_t i = 0; i < bytes.size(); ++i) {
    out << static_cast<int>(static_cast<unsigned char>(bytes[i]))
        << ((i + 1) % kOnALine == 0 ? ",\n" : ",");
  }
}

int Fail(const std::string& text) {
  std::cerr << "tacho_embed: " << text << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return Fail("no output file is named");
  std::map<std::string, std::string> files;  // By path: the table is sorted.
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.rfind('=');
    if (equals == std::string::npos) return Fail(argument + " is not FILE=PATH");
    files[argument.substr(equals + 1)] = argument.substr(0, equals);
  }
  std::ostringstream arrays;
  std::ostringstream table;
  int number = 0;
  for (const auto& [path, file] : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in) return Fail("cannot read " + file);
    const char* type = tacho::server::web::FileTypeOf(path);
    if (type == nullptr) return Fail("no content type is known for " + path);
    const std::optional<std::string> packed = Pack(bytes);
    if (!packed) return Fail("zlib could not pack " + file);
    arrays << "const unsigned char kFile" << number << "[] = {\n";
    WriteBytes(*packed, arrays);
    arrays << "};\n";
    table << "    {\"" << path << "\", \"" << type << "\", \"\\\"" << Etag(bytes)
          << "\\\"\", View(kFile" << number << ", sizeof(kFile" << number << ")), " << bytes.size()
          << ", " << (HasHash(path) ? "true" : "false") << "},\n";
    ++number;
  }
  std::ofstream out(argv[1], std::ios::binary);
  out << "// Written by tacho_embed.\n#include \"server/web/web_assets.h\"\n\n"
      << "namespace tacho::server::web {\nnamespace {\n\n"
      << "absl::string_view View(const unsigned char* bytes, size_t size) {\n"
      << "  return {reinterpret_cast<const char*>(bytes), size};\n}\n\n"
      << arrays.str() << "\n}  // namespace\n\n"
      << "absl::Span<const WebAsset> WebAssets() {\n  static const WebAsset kAssets[] = {\n"
      << table.str() << "  };\n  return kAssets;\n}\n\n}  // namespace tacho::server::web\n";
  out.close();
  return out ? 0 : Fail(std::string("cannot write ") + argv[1]);
}
