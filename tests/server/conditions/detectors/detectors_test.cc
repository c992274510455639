// The registry and the configuration's schema: each condition once, each key with a help, a default
// and limits, and each key reaches its detector.
#include "server/conditions/detectors/detectors.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "proto/config/config_field.h"
#include "proto/config/profile_defaults.h"
#include "tacho/config/v1/collector.pb.h"
#include "tests/server/conditions/detectors/curve_windows.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ::testing::IsSupersetOf;

config::v1::Conditions Parsed(const char* yaml) {
  const config::v1::Collector config = With(yaml);
  return config.conditions();
}

std::vector<std::string> NamesOf(const std::vector<Detector>& detectors) {
  std::vector<std::string> names;
  for (const Detector& detector : detectors) names.push_back(detector.name);
  return names;
}

// Messages of conditions, in the order of their fields.
std::vector<const Descriptor*> MessagesOf(const Descriptor& section) {
  std::vector<const Descriptor*> messages;
  for (int i = 0; i < section.field_count(); ++i) {
    messages.push_back(section.field(i)->message_type());
  }
  return messages;
}

// Alerts, dashboards and stored events use these names.
TEST(DetectorsTest, NoConditionIsLostOrRenamed) {
  const config::v1::Conditions config = Parsed("");
  EXPECT_THAT(
      NamesOf(DetectorsOf(config.progress())),
      IsSupersetOf({"Stalled", "Straggling", "InputBound", "LowUtilization", "SlowerThanBaseline",
                    "ThroughputDropped", "TaskMissing", "AgentSilent", "TrainerSilent",
                    "ClockSkewed", "DataLoss", "TrainerExited", "PhaseLong", "SlowCollective"}));
  EXPECT_THAT(
      NamesOf(DetectorsOf(config.curves())),
      IsSupersetOf({"Diverged", "LossSpike", "Plateau", "Oscillating", "GradientExploding",
                    "GradientVanished", "WeightsFrozen", "Overfitting", "ReplicaDisagreement"}));
  EXPECT_THAT(NamesOf(DetectorsOf(config.hardware())),
              IsSupersetOf({"MemoryLeak", "MemoryPressure", "Throttled", "HardwareErrors"}));
}

TEST(DetectorsTest, EachMessageOfTheConfigurationHasItsRowInItsOrder) {
  std::vector<std::string> messages;
  for (const Descriptor* section :
       {Progress::descriptor(), Curves::descriptor(), Hardware::descriptor()}) {
    for (const Descriptor* message : MessagesOf(*section)) messages.push_back(message->name());
  }
  EXPECT_EQ(NamesOf(AllDetectors(Parsed(""))), messages);
}

TEST(DetectorsTest, EachThresholdHasAHelpADefaultAndLimits) {
  for (const Descriptor* section :
       {Progress::descriptor(), Curves::descriptor(), Hardware::descriptor()}) {
    for (const Descriptor* message : MessagesOf(*section)) {
      for (const char* name : {"enabled", "for", "clear_after", "severity"}) {
        EXPECT_NE(message->FindFieldByName(name), nullptr) << message->name() << "." << name;
      }
      for (int i = 0; i < message->field_count(); ++i) {
        const FieldDescriptor& field = *message->field(i);
        const config::v1::Key& key = config::KeyOf(field);
        EXPECT_NE(key.help(), "") << field.full_name();
        if (field.name() == "severity") continue;
        EXPECT_NE(key.default_value(), "") << field.full_name();
        if (field.name() == "enabled") continue;
        EXPECT_NE(key.min(), "") << field.full_name();
      }
    }
  }
}

TEST(DetectorsTest, DefaultsOfProfilesAreValuesOfTheirKeys) {
  size_t checked = 0;
  for (const Descriptor* section :
       {Progress::descriptor(), Curves::descriptor(), Hardware::descriptor()}) {
    for (const Descriptor* message : MessagesOf(*section)) {
      const std::unique_ptr<google::protobuf::Message> value(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(message)->New());
      for (int i = 0; i < message->field_count(); ++i) {
        const FieldDescriptor& field = *message->field(i);
        for (const char* profile : {"fast", "quiet"}) {
          const std::string& text = config::ProfileDefault(field, profile);
          if (text.empty()) continue;
          const absl::Status set = config::SetFromText(text, /*quoted=*/false, field, value.get());
          EXPECT_TRUE(set.ok()) << field.full_name() << " " << profile << ": " << set;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 30u);
}

TEST(DetectorsTest, AllAreEnabledByDefaultAndSayNothingAboutAnEmptyWindow) {
  JobWindow empty;
  empty.now_ns = 1'000'000'000;
  for (const Detector& detector : AllDetectors(Parsed(""))) {
    EXPECT_TRUE(detector.enabled) << detector.name;
    EXPECT_EQ(detector.severity, std::nullopt) << detector.name;
    EXPECT_FALSE(detector.detect(JobWindow()).judged) << detector.name;
    EXPECT_FALSE(detector.detect(empty).present) << detector.name;
  }
}

TEST(DetectorsTest, RowsHaveTheTimesAndSeverityOfTheConfiguration) {
  const config::v1::Conditions config = Parsed(R"(
conditions:
  progress:
    stalled: {for: 7s, severity: info, floor: 30s, enabled: false}
  curves:
    gradient_exploding: {limit: 50, for: 7s, clear_after: 9s, severity: critical}
    plateau: {enabled: false}
  hardware:
    throttled: {enabled: false, for: 3m, clear_after: 7m, severity: info}
)");
  const std::vector<Detector> progress = DetectorsOf(config.progress());
  EXPECT_FALSE(progress[0].enabled);
  EXPECT_EQ(progress[0].hold_for, absl::Seconds(7));
  EXPECT_EQ(progress[0].severity, Severity::kInfo);
  EXPECT_TRUE(progress[1].enabled);
  EXPECT_EQ(progress[1].severity, std::nullopt);
  const std::vector<Detector> curves = DetectorsOf(config.curves());
  EXPECT_FALSE(curves[2].enabled);
  EXPECT_EQ(curves[4].hold_for, absl::Seconds(7));
  EXPECT_EQ(curves[4].clear_after, absl::Seconds(9));
  EXPECT_EQ(curves[4].severity, Severity::kCritical);
  const std::vector<Detector> hardware = DetectorsOf(config.hardware());
  EXPECT_TRUE(hardware[0].enabled);
  EXPECT_EQ(hardware[0].severity, std::nullopt);
  EXPECT_FALSE(hardware[2].enabled);
  EXPECT_EQ(hardware[2].hold_for, absl::Minutes(3));
  EXPECT_EQ(hardware[2].clear_after, absl::Minutes(7));
  EXPECT_EQ(hardware[2].severity, Severity::kInfo);
}

TEST(DetectorsTest, AThresholdOfTheConfigurationReachesItsDetector) {
  const config::v1::Conditions config =
      Parsed("conditions: {curves: {gradient_exploding: {limit: 50}}}");
  WindowOf window;
  window.Add(0, Signal::kGradNorm, std::vector<double>(10, 70));
  EXPECT_TRUE(DetectorsOf(config.curves())[4].detect(window).present);
  EXPECT_FALSE(DetectorsOf(Parsed("").curves())[4].detect(window).present);
}

}  // namespace
}  // namespace tacho::server::conditions
