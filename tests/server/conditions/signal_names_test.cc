#include "server/conditions/window/signal_names.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tacho::server::conditions {
namespace {

Signal SignalOf(const SignalNames& names, absl::string_view metric) {
  const auto match = names.Find(metric);
  return match ? match->signal : Signal::kCount;
}

TEST(SignalNamesTest, NormalisesCaseAndSeparators) {
  EXPECT_EQ(NormalisedName("Train/Loss"), "train_loss");
  EXPECT_EQ(NormalisedName("time_metrics/end_to_end(s)"), "time_metrics_end_to_end_s");
  EXPECT_EQ(NormalisedName("grad_2.0_norm_total"), "grad_2_0_norm_total");
  EXPECT_EQ(NormalisedName("--"), "");
}

TEST(SignalNamesTest, KnowsTheNamesOfFrameworks) {
  const SignalNames names;
  EXPECT_EQ(SignalOf(names, "lm loss"), Signal::kLoss);
  EXPECT_EQ(SignalOf(names, "lm loss validation"), Signal::kEvalLoss);
  EXPECT_EQ(SignalOf(names, "loss_metrics/global_avg_loss"), Signal::kLoss);
  EXPECT_EQ(SignalOf(names, "eval/loss"), Signal::kEvalLoss);
  EXPECT_EQ(SignalOf(names, "eval_g0_loss"), Signal::kEvalLoss);
  EXPECT_EQ(SignalOf(names, "lr-AdamW/pg1"), Signal::kLearningRate);
  EXPECT_EQ(SignalOf(names, "iteration-time"), Signal::kStepTime);
  EXPECT_EQ(SignalOf(names, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), Signal::kChipTensorBusy);
}

TEST(SignalNamesTest, LeavesOtherMetricsAlone) {
  const SignalNames names;
  for (const char* other : {"loss_regularization", "loss-scale", "num-zeros", "lrx", "replica_id",
                            "mem-allocated-bytes", "", "val", "eval_loss_scale"}) {
    EXPECT_FALSE(names.Find(other)) << other;
  }
}

TEST(SignalNamesTest, ConvertsUnits) {
  const SignalNames names;
  EXPECT_EQ(names.Find("tpu.runtime.tensorcore.dutycycle.percent")->factor, 0.01);
  EXPECT_EQ(names.Find("DCGM_FI_DEV_FB_USED")->factor, 1048576);
  EXPECT_EQ(names.Find("DCGM_FI_DEV_SM_CLOCK")->factor, 1e6);
  EXPECT_EQ(names.Find("loss")->factor, 1);
}

TEST(SignalNamesTest, RanksThePreferredNameFirst) {
  const SignalNames names;
  EXPECT_LT(names.Find("learning/raw_grad_norm")->rank, names.Find("learning/grad_norm")->rank);
  EXPECT_LT(names.Find("train_loss_step")->rank, names.Find("train_loss_epoch")->rank);
}

TEST(SignalNamesTest, ConfiguredListsReplaceTheirSignalsDefaults) {
  const SignalNames names(
      {{Signal::kParamNorm, {"norm"}}, {Signal::kChipBusy, {"busy", "duty_cycle_pct"}}});
  EXPECT_EQ(SignalOf(names, "norm"), Signal::kParamNorm) << "not the default grad_norm";
  EXPECT_FALSE(names.Find("param_norm")) << "replaced";
  EXPECT_EQ(SignalOf(names, "grad_norm"), Signal::kGradNorm) << "untouched";
  EXPECT_EQ(names.Find("busy")->factor, 1);
  EXPECT_EQ(names.Find("duty_cycle_pct")->factor, 0.01);
  EXPECT_EQ(names.Find("duty_cycle_pct")->rank, 1u);
}

TEST(SignalNamesTest, ExactNamesWinOverPatterns) {
  const SignalNames names({{Signal::kLoss, {"*"}}});
  EXPECT_EQ(SignalOf(names, "anything"), Signal::kLoss);
  EXPECT_EQ(SignalOf(names, "eval_loss"), Signal::kEvalLoss);
  EXPECT_EQ(SignalOf(names, "lr_pg0"), Signal::kLoss) << "configured patterns come first";
}

TEST(SignalNamesTest, DefaultsAreNormalisedUniqueAndOfEverySignal) {
  std::set<std::string> seen;
  std::set<Signal> signals;
  for (const DefaultName& name : DefaultNames()) {
    EXPECT_TRUE(seen.insert(std::string(name.name)).second) << name.name << " twice";
    if (!absl::StrContains(name.name, "*")) {
      EXPECT_EQ(NormalisedName(name.name), name.name);
    }
    signals.insert(name.signal);
  }
  EXPECT_EQ(signals.size(), static_cast<size_t>(Signal::kCount));
}

TEST(SignalNamesTest, TheDocumentListsEveryDefaultName) {
  std::ifstream file(TACHO_SOURCE_DIR "/docs/notation.md");
  ASSERT_TRUE(file.good());
  std::map<std::string, std::string> rows;  // By signal.
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    rows.emplace(line.substr(3, line.find('`', 3) - 3), line);
  }
  for (const DefaultName& name : DefaultNames()) {
    EXPECT_TRUE(absl::StrContains(rows[std::string(SignalName(name.signal))],
                                  absl::StrCat("`", name.name, "`")))
        << "docs/notation.md lacks " << name.name << " in the row " << SignalName(name.signal);
  }
}

}  // namespace
}  // namespace tacho::server::conditions
