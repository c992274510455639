#include "tests/bench/bench_flags.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"

namespace tacho::bench {

void ParseFlags(int argc, char** argv, std::map<std::string, std::string>* flags) {
  for (int i = 1; i < argc; i += 2) {
    const bool named = std::strncmp(argv[i], "--", 2) == 0;
    const auto flag = named ? flags->find(argv[i] + 2) : flags->end();
    if (flag != flags->end() && i + 1 < argc) {
      flag->second = argv[i + 1];
      continue;
    }
    std::fprintf(stderr, "%s: bad argument %s; flags and defaults:\n", argv[0], argv[i]);
    for (const auto& [name, value] : *flags) {
      std::fprintf(stderr, "  --%s %s\n", name.c_str(), value.c_str());
    }
    std::exit(2);
  }
}

int64_t NumberFlag(const std::map<std::string, std::string>& flags, const std::string& name) {
  int64_t number = 0;
  if (absl::SimpleAtoi(flags.at(name), &number)) return number;
  std::fprintf(stderr, "--%s %s: expected a number\n", name.c_str(), flags.at(name).c_str());
  std::exit(2);
}

}  // namespace tacho::bench
