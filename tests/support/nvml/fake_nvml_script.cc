#include "tests/support/nvml/fake_nvml_script.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tacho::fake_nvml {
namespace {

void ReadGpuLine(uint32_t number, std::istringstream* line, Script* script) {
  Gpu& gpu = script->gpus[number];
  std::string key;
  *line >> key;
  if (key == "pid") {
    uint32_t pid = 0;
    *line >> pid;
    gpu.pids.push_back(pid);
    return;
  }
  std::string rest;
  std::getline(*line >> std::ws, rest);
  gpu.values[key] = rest;
}

}  // namespace

Script ReadScript() {
  Script script;
  const char* const path = std::getenv("TACHO_FAKE_NVML");
  if (path == nullptr) return script;
  std::ifstream file(path);
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string word;
    if (!(line >> word)) continue;
    if (word == "result") {
      line >> script.result;
    } else if (word == "driver") {
      line >> script.driver;
    } else if (word == "count") {
      line >> script.count;
    } else if (word == "event") {
      Event event;
      line >> event.sequence >> event.gpu >> event.type >> event.data;
      script.events.push_back(event);
    } else {
      ReadGpuLine(static_cast<uint32_t>(std::strtoul(word.c_str(), nullptr, 10)), &line, &script);
    }
  }
  return script;
}

}  // namespace tacho::fake_nvml
