#include "server/interop/formats/foreign_write.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/wire_reader.h"
#include "storage/codec/bytes.h"

namespace tacho::server::interop {
namespace {

constexpr char kLabelTag = 0x0a;  // Field 1 of TimeSeries, and of Label: its name.
constexpr char kValueTag = 0x12;  // Field 2 of Label.

void AppendText(char tag, absl::string_view text, std::string* out) {
  out->push_back(tag);
  storage::PutString(text, out);
}

}  // namespace

absl::Status ForeignWrite::CheckSize() const {
  if (samples.size() <= kMaxSamples && text_bytes <= kMaxTextBytes) return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kTooLarge,
      absl::StrCat("the request has more than ", kMaxSamples, " samples, or labels of more than ",
                   kMaxTextBytes, " bytes in all: send fewer samples a request"));
}

void AppendLabel(absl::string_view name, absl::string_view value, std::string* key) {
  key->push_back(kLabelTag);
  const size_t texts = name.size() + value.size();
  storage::PutVarint(
      2 + storage::VarintBytes(name.size()) + storage::VarintBytes(value.size()) + texts, key);
  AppendText(kLabelTag, name, key);
  AppendText(kValueTag, value, key);
}

absl::StatusOr<storage::Labels> LabelsOfKey(absl::string_view key) {
  storage::Labels labels;
  WireReader in(key);
  while (in.Next()) {
    if (in.field() != 1 || !in.is_bytes()) continue;
    auto& [name, value] = labels.emplace_back();
    WireReader label(in.bytes());
    while (label.Next()) {
      if (!label.is_bytes()) continue;
      if (label.field() == 1) name = std::string(label.bytes());
      if (label.field() == 2) value = std::string(label.bytes());
    }
    if (label.broken()) return absl::InvalidArgumentError("a label is damaged");
  }
  if (in.broken()) return absl::InvalidArgumentError("the labels of a series are damaged");
  return labels;
}

std::string LabelNameOf(absl::string_view name) {
  std::string allowed(name);
  for (char& c : allowed) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return allowed;
}

int64_t NanosFromMillis(int64_t ms) {
  int64_t ns = 0;
  if (!__builtin_mul_overflow(ms, int64_t{1'000'000}, &ns)) return ns;
  return ms < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace tacho::server::interop
