#include "server/ingest/wire_check.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"

namespace tacho::server::ingest {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A label with a name and a value of one byte each.
constexpr uint64_t kLeastLabelBytes = 8;
// A newer agent may send fields that we do not know, one or two for each thing that it sends.
constexpr uint64_t kFewUnknown = 1024;
constexpr uint64_t kBytesPerUnknown = 32;
// More than any map may have.
constexpr uint64_t kMaxEntries = 4096;

// The messages of proto/tacho/v1/ingest.proto that have others in them; kLeaf for the rest.
enum class Kind { kClient, kHello, kAttributes, kLayout, kSeries, kEvent, kLeaf };

struct Counts {
  uint64_t series = 0;
  uint64_t labels = 0;
  uint64_t entries = 0;
  uint64_t unknown = 0;
};

// The highest number of a field of ours.
int LastField(Kind kind) {
  switch (kind) {
    case Kind::kSeries:
      return 2;
    case Kind::kAttributes:
    case Kind::kLayout:
      return 4;
    case Kind::kEvent:
      return 7;
    case Kind::kClient:
      return 8;
    case Kind::kHello:
      return 10;
    case Kind::kLeaf:
      return 5;
  }
  return 0;
}

// Counts a field and returns the kind of what is in it.
Kind Enter(Kind kind, int field, Counts* counts) {
  switch (kind) {
    case Kind::kClient: {
      constexpr Kind kKinds[] = {Kind::kLeaf,   Kind::kHello, Kind::kAttributes,
                                 Kind::kLayout, Kind::kLeaf,  Kind::kEvent,
                                 Kind::kLeaf,   Kind::kLeaf,  Kind::kLeaf};
      return kKinds[field];
    }
    case Kind::kHello:
      if (field == 4) ++counts->labels;
      return Kind::kLeaf;
    case Kind::kLayout:
      if (field != 4) return Kind::kLeaf;
      ++counts->series;
      return Kind::kSeries;
    case Kind::kSeries:
      if (field == 2) ++counts->labels;
      return Kind::kLeaf;
    case Kind::kAttributes:
      if (field == 4) ++counts->entries;
      return Kind::kLeaf;
    case Kind::kEvent:
      if (field == 7) ++counts->entries;
      return Kind::kLeaf;
    case Kind::kLeaf:
      break;
  }
  return Kind::kLeaf;
}

// Strings and packed numbers look like messages of leaves, and are skipped.
bool Walk(CodedInputStream* in, Kind kind, Counts* counts) {
  for (uint32_t tag = in->ReadTag(); tag != 0; tag = in->ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field > LastField(kind)) ++counts->unknown;
    if (field > LastField(kind) ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(in, tag)) return false;
      continue;
    }
    const Kind inner = Enter(kind, field, counts);
    int size = 0;
    if (!in->ReadVarintSizeAsInt(&size)) return false;
    if (inner == Kind::kLeaf) {
      if (!in->Skip(size)) return false;
      continue;
    }
    const CodedInputStream::Limit limit = in->PushLimit(size);
    if (!Walk(in, inner, counts) || in->BytesUntilLimit() != 0) return false;
    in->PopLimit(limit);
  }
  return true;
}

}  // namespace

bool HasSaneParts(google::protobuf::io::ZeroCopyInputStream* message, uint64_t bytes,
                  uint64_t max_series) {
  CodedInputStream in(message);
  Counts counts;
  Walk(&in, Kind::kClient, &counts);
  return counts.series <= max_series && counts.labels <= bytes / kLeastLabelBytes &&
         counts.entries <= kMaxEntries && counts.unknown <= kFewUnknown + bytes / kBytesPerUnknown;
}

}  // namespace tacho::server::ingest
