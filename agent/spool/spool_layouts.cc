// The layouts of Spool, and how rows become batches. A collector limits the bytes of a message, so
// many rows become several batches, and a wide layout becomes several layouts (layout_parts.h):
// each row is then a row of every part, with the same time, and all parts are spooled in one write.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/spool/layout_parts.h"
#include "agent/spool/spool.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

// Bytes of a Batch beyond its columns: tags, lengths, sequence, layout.
constexpr uint64_t kBatchOverhead = 64;

// Bytes of a batch for its columns.
uint64_t RoomIn(const BatchLimits& limits) {
  return limits.max_bytes - std::min(limits.max_bytes, kBatchOverhead);
}

// A row of a layout within them fits into a batch, with its time and step.
LayoutLimits LayoutLimitsOf(const BatchLimits& limits) {
  const uint64_t values = RoomIn(limits) / 8;
  return {.max_bytes = limits.max_bytes,
          .max_series = std::min(limits.max_series, values > 3 ? values - 2 : 1)};
}

}  // namespace

uint32_t Spool::AddLayout(uint32_t id, std::string content, const v1::Layout& layout) {
  TACHO_CHECK(id != 0);
  const auto added = layouts_by_content_.emplace(std::move(content), id).first;
  layouts_[id] = {.content = &added->first,
                  .parts = {},
                  .job = layout.source().job(),
                  .width = static_cast<uint64_t>(layout.series_size()),
                  .has_steps = layout.has_steps()};
  next_layout_ = std::max(next_layout_, id + 1);
  return id;
}

uint32_t Spool::DefineOne(const v1::Layout& layout) {
  std::string bytes = layout.SerializeAsString();
  const auto known = layouts_by_content_.find(bytes);
  const uint32_t id = known != layouts_by_content_.end()
                          ? known->second
                          : AddLayout(next_layout_, std::move(bytes), layout);
  layouts_[id].defined = true;
  return id;
}

std::vector<uint32_t> Spool::DefineParts(const v1::Layout& layout) {
  std::vector<uint32_t> ids;
  for (const v1::Layout& part : CutLayout(layout, LayoutLimitsOf(limits_))) {
    ids.push_back(DefineOne(part));
  }
  return ids;
}

absl::StatusOr<uint32_t> Spool::DefineLayout(const v1::Layout& layout) {
  if (layout.series().empty()) return absl::InvalidArgumentError("layout without series");
  v1::Layout content = layout;
  content.clear_id();

  absl::MutexLock lock(&mutex_);
  std::vector<uint32_t> parts = DefineParts(content);
  if (parts.size() == 1) return parts.front();
  const auto [wide, is_new] = wide_by_parts_.emplace(parts, next_layout_);
  if (is_new) {
    ++next_layout_;
    layouts_[wide->second] = {.parts = std::move(parts),
                              .job = content.source().job(),
                              .width = static_cast<uint64_t>(content.series_size()),
                              .has_steps = content.has_steps(),
                              .defined = true};
  }
  return wide->second;
}

absl::StatusOr<v1::Layout> Spool::FindLayout(uint32_t layout) const {
  absl::MutexLock lock(&mutex_);
  const auto found = layouts_.find(layout);
  v1::Layout result;
  if (found == layouts_.end() || found->second.content == nullptr ||
      !result.ParseFromString(*found->second.content)) {
    return absl::NotFoundError(absl::StrCat("no layout ", layout, " in the spool"));
  }
  return result;
}

absl::Status Spool::CheckRows(uint32_t layout, const Rows& rows) const {
  const auto found = layouts_.find(layout);
  if (found == layouts_.end() || !found->second.defined) {
    return absl::InvalidArgumentError(absl::StrCat("layout ", layout, " was never defined"));
  }
  const LayoutState& state = found->second;
  if (rows.values.size() != rows.times.size() * state.width ||
      rows.steps.size() != (state.has_steps ? rows.times.size() : 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows do not fit layout ", layout, ": ", rows.times.size(), " times, ", rows.steps.size(),
        " steps, ", rows.values.size(), " values of ", state.width));
  }
  return absl::OkStatus();
}

std::vector<uint32_t> Spool::PartsOf(uint32_t layout) {
  std::vector<uint32_t> parts;
  std::vector<uint32_t> left = {layout};
  while (!left.empty()) {
    const uint32_t id = left.back();
    left.pop_back();
    CutIfTooWide(id);
    const std::vector<uint32_t>& cut = layouts_[id].parts;
    left.insert(left.end(), cut.rbegin(), cut.rend());
    if (cut.empty()) parts.push_back(id);
  }
  return parts;
}

void Spool::CutIfTooWide(uint32_t layout) {
  const LayoutState& state = layouts_[layout];
  if (!state.parts.empty()) return;
  if (Fits(state.content->size(), state.width, LayoutLimitsOf(limits_))) return;
  v1::Layout whole;
  TACHO_CHECK(whole.ParseFromString(*state.content));  // It was serialized or parsed here.
  std::vector<uint32_t> parts = DefineParts(whole);
  layouts_[layout].parts = std::move(parts);
}

std::vector<v1::ClientMessage> Spool::Split(std::span<const uint32_t> parts, const Rows& rows) {
  std::vector<v1::ClientMessage> messages;
  if (rows.times.empty()) return messages;
  const uint64_t all_columns = rows.values.size() / rows.times.size();
  uint64_t column = 0;
  for (const uint32_t part : parts) {
    const LayoutState& state = layouts_[part];
    const uint64_t row_bytes = 8 * (1 + (state.has_steps ? 1 : 0) + state.width);
    const uint64_t at_once =
        std::max<uint64_t>(1, std::min<uint64_t>(limits_.max_rows, RoomIn(limits_) / row_bytes));
    for (uint64_t first = 0; first < rows.times.size(); first += at_once) {
      const uint64_t count = std::min<uint64_t>(at_once, rows.times.size() - first);
      v1::Batch* batch = messages.emplace_back().mutable_batch();
      batch->set_layout(part);
      const auto times = rows.times.subspan(first, count);
      batch->mutable_times_unix_ns()->Add(times.begin(), times.end());
      if (state.has_steps) {
        const auto steps = rows.steps.subspan(first, count);
        batch->mutable_steps()->Add(steps.begin(), steps.end());
      }
      for (uint64_t row = first; row < first + count; ++row) {
        const auto values = rows.values.subspan(row * all_columns + column, state.width);
        batch->mutable_values()->Add(values.begin(), values.end());
      }
    }
    column += state.width;
  }
  TACHO_CHECK(column == all_columns);
  return messages;
}

void Spool::LimitBatches(const BatchLimits& limits) {
  const BatchLimits ours;
  absl::MutexLock lock(&mutex_);
  limits_.max_bytes = std::min(ours.max_bytes, limits.max_bytes);
  limits_.max_rows = std::min(ours.max_rows, limits.max_rows);
  limits_.max_series = std::min(ours.max_series, limits.max_series);
}

}  // namespace tacho::agent
