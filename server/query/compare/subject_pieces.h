// What the owner of a job returns of it to another member that compares it: figures and places as
// messages, and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/query/compare/compared_metric.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr size_t kPlacesPerPiece = 8'192;  // 48 bytes each: 384 KiB.

void ToProto(const ComparedFigures& figures, v1::CompareSubjectResponse::Figures* proto);
ComparedFigures FromProto(const v1::CompareSubjectResponse::Figures& proto);

// Places [begin, end), which are there.
void ToProto(const ComparedPlaces& places, size_t begin, size_t end,
             v1::CompareSubjectResponse::Places* proto);
// Appends to *places, which are those of earlier pieces.
//   INTERNAL  columns of unequal length, positions that do not ascend or lie above `last`.
absl::Status AppendPlaces(const v1::CompareSubjectResponse::Places& proto, int64_t last,
                          ComparedPlaces* places);

}  // namespace tacho::server::query
