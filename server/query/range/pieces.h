// Pieces of an answer: small enough for any client's message limit (gRPC's default is 4 MiB), large
// enough that their number costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/query/read/reduce.h"
#include "server/query/read/series_scan.h"
#include "server/query/read/value_set.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr size_t kSamplesPerPiece = 16'384;  // 28 bytes each: 448 KiB.
inline constexpr size_t kBucketsPerPiece = 4'096;   // 96 bytes each: 384 KiB.

using BucketValues = ValueSet<v1::BucketValue>;

// Samples [begin, end) of the block or the view.
void FillPoints(const storage::SampleBlock& block, size_t begin, size_t end, v1::Points* points);
void FillPoints(const storage::SampleView& view, size_t begin, size_t end, v1::Points* points);
void FillPoints(std::span<const Sample> samples, v1::Points* points);
// Appends; columns of values that are not in `values` stay as they are.
void FillBuckets(std::span<const Bucket> buckets, const BucketValues& values, v1::Buckets* proto);

}  // namespace tacho::server::query
