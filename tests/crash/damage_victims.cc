#include "tests/crash/damage_victims.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/codec/bytes.h"

namespace tacho::crash {

using storage::PutString;
using storage::PutVarint;

std::string EncodeImage(const DamageImage& image) {
  std::string out;
  for (const auto* map : {&image.files, &image.kinds}) {
    PutVarint(map->size(), &out);
    for (const auto& [key, value] : *map) {
      PutString(key, &out);
      PutString(value, &out);
    }
  }
  PutString(image.expected, &out);
  PutVarint(image.earlier.size(), &out);
  for (const std::string& one : image.earlier) PutString(one, &out);
  return out;
}

DamageImage DecodeImage(const std::string& bytes) {
  DamageImage image;
  storage::ByteReader in(bytes);
  for (auto* map : {&image.files, &image.kinds}) {
    for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
      const std::string key(in.String());
      (*map)[key] = std::string(in.String());
    }
  }
  image.expected = std::string(in.String());
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    image.earlier.emplace_back(in.String());
  }
  TACHO_CHECK(in.AtEnd());
  return image;
}

void FillKinds(const std::string& directory, DamageImage* image) {
  tacho::testing::PowerCutEnv disk(1);
  disk.SetFiles(image->files);
  for (const auto& [name, kind] : KindsOfFiles(&disk, directory)) {
    image->kinds[absl::StrCat(directory, "/", name)] = kind;
  }
}

}  // namespace tacho::crash
