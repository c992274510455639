// Whatever the file: no crash, and what was accepted is read back from its own print.

#include <cstdint>
#include <cstdlib>

#include "google/protobuf/util/message_differencer.h"
#include "proto/config/yaml_config.h"
#include "tacho/config/v1/agent.pb.h"
#include "tacho/config/v1/collector.pb.h"

namespace {

template <typename Config>
void Check(absl::string_view text) {
  Config config;
  if (!tacho::config::ParseYaml(text, "fuzz", &config).ok()) return;
  Config again;
  if (!tacho::config::ParseYaml(tacho::config::PrintYaml(config), "fuzz", &again).ok()) abort();
  if (!google::protobuf::util::MessageDifferencer::Equals(config, again)) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Check<tacho::config::v1::Collector>(text);
  Check<tacho::config::v1::Agent>(text);
  return 0;
}
