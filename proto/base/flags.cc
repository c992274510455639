#include "proto/base/flags.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/nearest.h"

namespace tacho {

std::optional<std::string> ParsedArgs::Get(absl::string_view flag) const {
  const auto found = values_.find(std::string(flag));
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> ParsedArgs::GetAll(absl::string_view flag) const {
  const auto found = values_.find(std::string(flag));
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

class ArgsReader {
 public:
  ArgsReader(const std::vector<std::string>& args, const std::vector<FlagSpec>& flags)
      : args_(args), flags_(flags) {}

  absl::StatusOr<ParsedArgs> Read() {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_++];
      if (arg == "--") {
        parsed_.positionals_.insert(parsed_.positionals_.end(), args_.begin() + at_, args_.end());
        break;
      }
      if (arg.size() < 2 || arg[0] != '-') {
        parsed_.positionals_.push_back(arg);
        continue;
      }
      const absl::Status read = absl::StartsWith(arg, "--") ? ReadLong(arg) : ReadShort(arg);
      if (!read.ok()) return read;
    }
    return std::move(parsed_);
  }

 private:
  absl::Status ReadLong(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                   [&](const FlagSpec& spec) { return spec.name == name; });
    if (flag == flags_.end()) return Unknown(name);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = arg.substr(equals + 1);
    return Store(*flag, "--" + name, value);
  }

  absl::Status ReadShort(const std::string& arg) {
    const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                   [&](const FlagSpec& spec) { return spec.letter == arg[1]; });
    if (flag == flags_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag '", arg.substr(0, 2),
                       "' (a name that begins with a dash goes after '--')"));
    }
    std::optional<std::string> value;
    if (arg.size() > 2) value = arg.substr(arg[2] == '=' ? 3 : 2);
    return Store(*flag, arg.substr(0, 2), value);
  }

  absl::Status Store(const FlagSpec& flag, const std::string& typed,
                     std::optional<std::string> value) {
    if (flag.placeholder.empty()) {
      if (value) {
        return absl::InvalidArgumentError(
            absl::StrCat(typed, "=", *value, ": ", typed, " takes no value"));
      }
      value = "";
    } else if (!value) {
      if (at_ == args_.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(typed, " needs a value: ", typed, " ", flag.placeholder));
      }
      value = args_[at_++];
    }
    if (!flag.choices.empty() &&
        std::find(flag.choices.begin(), flag.choices.end(), *value) == flag.choices.end()) {
      return absl::InvalidArgumentError(absl::StrCat(typed, " '", *value, "': expected one of ",
                                                     absl::StrJoin(flag.choices, ", "),
                                                     DidYouMean(*value, flag.choices)));
    }
    std::vector<std::string>& values = parsed_.values_[flag.name];
    if (!flag.repeated && !flag.placeholder.empty() && !values.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(typed, " is given twice"));
    }
    values.push_back(*std::move(value));
    return absl::OkStatus();
  }

  absl::Status Unknown(const std::string& name) const {
    std::vector<std::string> known;
    for (const FlagSpec& flag : flags_) known.push_back("--" + flag.name);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag '--", name, "'", DidYouMean("--" + name, known)));
  }

  const std::vector<std::string>& args_;
  const std::vector<FlagSpec>& flags_;
  size_t at_ = 0;
  ParsedArgs parsed_;
};

absl::StatusOr<ParsedArgs> ParseArgs(const std::vector<std::string>& args,
                                     const std::vector<FlagSpec>& flags) {
  return ArgsReader(args, flags).Read();
}

}  // namespace tacho
