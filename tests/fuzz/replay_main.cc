// Stands in for libFuzzer where the compiler has none: runs the target over every file that is
// named, and over -runs= mutations of them. The same -seed= gives the same inputs.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

struct Options {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  uint64_t max_length = 4096;  // Bytes of a mutated input.
  std::vector<std::string> paths;
};

Options ParseArguments(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "-runs") {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "-max_len") {
      options.max_length = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name.rfind('-', 0) != 0) {
      options.paths.push_back(argument);
    }
  }
  return options;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> ReadSeeds(const std::vector<std::string>& paths) {
  std::vector<std::string> seeds = {""};
  for (const std::string& path : paths) {
    if (std::filesystem::is_regular_file(path)) seeds.push_back(ReadFile(path));
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) seeds.push_back(ReadFile(entry.path()));
    }
  }
  return seeds;
}

class Mutator {
 public:
  explicit Mutator(const Options& options)
      : random_(options.seed), max_length_(options.max_length) {}

  std::string Mutated(const std::vector<std::string>& seeds) {
    std::string input = seeds[Below(seeds.size())];
    for (size_t changes = 1 + Below(8); changes > 0; --changes) Change(seeds, &input);
    if (input.size() > max_length_) input.resize(max_length_);
    return input;
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  char AnyByte() { return static_cast<char>(random_()); }

  void Change(const std::vector<std::string>& seeds, std::string* input) {
    const size_t at = Below(input->size() + 1);
    switch (Below(6)) {
      case 0:  // Torn.
        input->resize(at);
        break;
      case 1:
        input->insert(at, 1, AnyByte());
        break;
      case 2:
        input->erase(at, 1 + Below(8));
        break;
      case 3:  // One bit.
        if (at < input->size()) (*input)[at] = static_cast<char>((*input)[at] ^ (1 << Below(8)));
        break;
      case 4:  // An extreme number.
        for (size_t i = at; i < std::min(at + 4, input->size()); ++i) {
          (*input)[i] = Below(2) == 0 ? '\xff' : '\0';
        }
        break;
      default: {  // A piece of another input.
        const std::string& other = seeds[Below(seeds.size())];
        input->insert(at, other.substr(Below(other.size() + 1), Below(64)));
      }
    }
  }

  std::mt19937_64 random_;
  const size_t max_length_;
};

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseArguments(argc, argv);
  const std::vector<std::string> seeds = ReadSeeds(options.paths);
  for (const std::string& seed : seeds) Run(seed);
  Mutator mutator(options);
  for (uint64_t i = 0; i < options.runs; ++i) Run(mutator.Mutated(seeds));
  std::printf("%zu inputs and %llu mutations\n", seeds.size(),
              static_cast<unsigned long long>(options.runs));
  return 0;
}
