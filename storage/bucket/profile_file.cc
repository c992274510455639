#include "storage/bucket/profile_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::storage {

std::map<std::string, Profile> ParseProfiles(absl::string_view text) {
  std::map<std::string, Profile> profiles;
  Profile* open = nullptr;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || absl::ascii_isspace(static_cast<unsigned char>(line.front()))) continue;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      absl::string_view name = line.substr(1, line.find(']') - 1);
      name = absl::StripAsciiWhitespace(name);
      if (absl::ConsumePrefix(&name, "profile ")) name = absl::StripAsciiWhitespace(name);
      open = &profiles[std::string(name)];
      continue;
    }
    const size_t equal = line.find('=');
    if (open == nullptr || equal == absl::string_view::npos) continue;
    (*open)[absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equal)))] =
        std::string(absl::StripAsciiWhitespace(line.substr(equal + 1)));
  }
  return profiles;
}

}  // namespace tacho::storage
