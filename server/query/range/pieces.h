// Pieces of an answer: small enough for every client's message limit (gRPC's default is 4 MiB),
// large enough that their number costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/reduce.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr size_t kSamplesPerPiece = 16'384;  // 28 bytes each: 448 KiB.
inline constexpr size_t kBucketsPerPiece = 4'096;   // 96 bytes each: 384 KiB.

// Which columns of values an answer has: one enumerator each; there are fewer than 32.
template <typename Enum>
class ValueSet {
 public:
  ValueSet() : bits_(~uint32_t{0}) {}  // All.

  // The columns that a request's field lists, or all if it lists none. `is_valid` is the enum's
  // own.
  //   INVALID_ARGUMENT  a value is unspecified or not known; the text names the field.
  static absl::StatusOr<ValueSet> Of(const google::protobuf::RepeatedField<int>& listed,
                                     bool (*is_valid)(int), const std::string& field) {
    ValueSet set;
    if (listed.empty()) return set;
    set.bits_ = 0;
    for (const int value : listed) {
      if (value == 0 || !is_valid(value)) {
        return errors::InvalidFieldError(field, "has a value that is not known here");
      }
      set.bits_ |= uint32_t{1} << value;
    }
    return set;
  }

  bool Has(Enum value) const { return (bits_ >> value & 1) != 0; }

 private:
  uint32_t bits_;
};
using BucketValues = ValueSet<v1::BucketValue>;

// Samples [begin, end) of the view.
void FillPoints(const storage::SampleView& view, size_t begin, size_t end, v1::Points* points);
void FillPoints(const storage::SampleBlock& block, v1::Points* points);  // All.
void FillPoints(std::span<const Sample> samples, v1::Points* points);
// Appends; columns of values that are not in `values` stay as they are.
void FillBuckets(std::span<const Bucket> buckets, const BucketValues& values, v1::Buckets* proto);

}  // namespace tacho::server::query
