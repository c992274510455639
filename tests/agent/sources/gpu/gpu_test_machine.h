// A machine whose GPUs are played by the fake NVML (tests/support/nvml), changed by writing its
// script.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::agent::testing {

// One at a time: the fake library finds the script through the environment.
class GpuTestMachine {
 public:
  GpuTestMachine();
  GpuTestMachine(const GpuTestMachine&) = delete;
  GpuTestMachine& operator=(const GpuTestMachine&) = delete;
  ~GpuTestMachine();

  // A GPU of which everything is known; its numbers follow from `number`.
  void AddGpu(int number);
  void RemoveGpu(int number) { gpus_.erase(number); }
  void Set(int number, const std::string& key, const std::string& value) {
    gpus_[number][key] = value;
  }
  void Unset(int number, const std::string& key) { gpus_[number].erase(key); }
  // A line of its own.
  void Add(const std::string& line) { lines_.push_back(line); }
  void ClearLines() { lines_.clear(); }
  // Makes it so, at once for whoever calls.
  void Write() const;

  static std::string Library();
  static std::string OldLibrary();

 private:
  std::string path_;
  std::map<int, std::map<std::string, std::string>> gpus_;
  std::vector<std::string> lines_;
};

}  // namespace tacho::agent::testing
