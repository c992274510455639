#include "tests/proto/compatibility.h"

#include <fstream>
#include <functional>
#include <map>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tacho/v1/admin.pb.h"
#include "tacho/v1/agent_requests.pb.h"
#include "tacho/v1/cluster.pb.h"
#include "tacho/v1/conditions.pb.h"
#include "tacho/v1/goodput.pb.h"
#include "tacho/v1/ingest.pb.h"
#include "tacho/v1/marks.pb.h"
#include "tacho/v1/member_reads.pb.h"
#include "tacho/v1/member_writes.pb.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/types.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::proto_test {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using google::protobuf::TextFormat;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHowToRenew[] =
    "The protos and tests/proto/tacho_v1.binpb differ. If proto/README.md allows the change, renew "
    "the set:\n  cd proto && protoc -I . --include_imports "
    "--descriptor_set_out=../tests/proto/tacho_v1.binpb tacho/v1/*.proto\n";

FileDescriptorSet Compiled() {
  FileDescriptorSet set;
  for (const FileDescriptor* file :
       {v1::Source::descriptor()->file(), v1::Hello::descriptor()->file(),
        v1::RangeRequest::descriptor()->file(), v1::DrainRequest::descriptor()->file(),
        v1::GoodputRequest::descriptor()->file(), v1::Condition::descriptor()->file(),
        v1::JobMarks::descriptor()->file(), v1::FleetRequest::descriptor()->file(),
        v1::AgentRequest::descriptor()->file(), v1::ForecastRequest::descriptor()->file(),
        v1::CostRequest::descriptor()->file(), v1::ClusterMember::descriptor()->file(),
        v1::MemberReadRequest::descriptor()->file(),
        v1::StoreSeriesRequest::descriptor()->file()}) {
    file->CopyTo(set.add_file());
  }
  return set;
}

FileDescriptorSet Committed() {
  FileDescriptorSet set;
  std::ifstream file(TACHO_COMMITTED_PROTOS, std::ios::binary);
  EXPECT_TRUE(set.ParseFromIstream(&file)) << "cannot read " << TACHO_COMMITTED_PROTOS;
  return set;
}

// protoc writes JSON names, the library does not; both mean the same.
void ClearJsonNames(DescriptorProto* message) {
  for (auto& field : *message->mutable_field()) field.clear_json_name();
  for (auto& nested : *message->mutable_nested_type()) ClearJsonNames(&nested);
}

std::map<std::string, std::string> TextsOf(FileDescriptorSet set) {
  std::map<std::string, std::string> texts;
  for (FileDescriptorProto& file : *set.mutable_file()) {
    for (DescriptorProto& message : *file.mutable_message_type()) ClearJsonNames(&message);
    texts[file.name()] = file.DebugString();
  }
  return texts;
}

TEST(CompatibilityTest, NothingInTheCommittedSetIsBroken) {
  EXPECT_THAT(FindBreaks(Committed(), Compiled()), IsEmpty());
}

// The committed set protects only what is in it.
TEST(CompatibilityTest, CommittedSetIsThatOfTheProtos) {
  EXPECT_EQ(TextsOf(Committed()), TextsOf(Compiled())) << kHowToRenew;
}

constexpr char kFile[] = R"pb(
  name: "a.proto"
  package: "p"
  syntax: "proto3"
  message_type {
    name: "M"
    field { name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT64 }
    field { name: "b" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".p.N" }
    field { name: "c" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 }
    oneof_decl { name: "o" }
    nested_type {
      name: "In"
      field { name: "d" number: 1 label: LABEL_REPEATED type: TYPE_DOUBLE }
    }
    enum_type {
      name: "K"
      value { name: "K0" number: 0 }
    }
    reserved_range { start: 8 end: 10 }
    reserved_name: "old"
  }
  message_type { name: "N" }
  enum_type {
    name: "E"
    value { name: "E0" number: 0 }
    value { name: "E1" number: 1 }
    reserved_range { start: 5 end: 6 }
  }
  service {
    name: "S"
    method { name: "R" input_type: ".p.M" output_type: ".p.N" server_streaming: true }
  }
)pb";

// The breaks that `change` makes to kFile.
std::vector<std::string> BreaksOf(const std::function<void(FileDescriptorProto&)>& change) {
  FileDescriptorSet before;
  EXPECT_TRUE(TextFormat::ParseFromString(kFile, before.add_file()));
  FileDescriptorSet now = before;
  change(*now.mutable_file(0));
  return FindBreaks(before, now);
}

TEST(FindBreaksTest, AllowsWhatOldProgramsCanIgnore) {
  EXPECT_THAT(BreaksOf([](auto&) {}), IsEmpty());
  EXPECT_THAT(BreaksOf([](auto& file) {
                auto& message = *file.mutable_message_type(0);
                auto* field = message.add_field();
                field->set_name("new");
                field->set_number(4);
                field = message.add_field();
                field->set_name("new_choice");
                field->set_number(5);
                field->set_oneof_index(0);
                file.add_message_type()->set_name("New");
                file.mutable_enum_type(0)->add_value()->set_number(2);
                file.mutable_service(0)->add_method()->set_name("New");
                file.add_service()->set_name("New");
              }),
              IsEmpty());
}

TEST(FindBreaksTest, ARemovedFieldMustReserveNumberAndName) {
  const auto remove = [](FileDescriptorProto& file) {
    file.mutable_message_type(0)->mutable_field()->DeleteSubrange(0, 1);
  };
  EXPECT_THAT(BreaksOf(remove), ElementsAre("p.M.a was removed and its number 1 is not reserved",
                                            "p.M.a was removed and its name is not reserved"));
  EXPECT_THAT(BreaksOf([&](auto& file) {
                remove(file);
                auto* range = file.mutable_message_type(0)->add_reserved_range();
                range->set_start(1);
                range->set_end(2);
                file.mutable_message_type(0)->add_reserved_name("a");
              }),
              IsEmpty());
}

TEST(FindBreaksTest, FindsEveryChangeOfAField) {
  const auto field = [](FileDescriptorProto& file, int i) {
    return file.mutable_message_type(0)->mutable_field(i);
  };
  EXPECT_THAT(BreaksOf([&](auto& file) { field(file, 0)->set_name("z"); }),
              ElementsAre("p.M.a was renamed to z, or its number was used again"));
  EXPECT_THAT(BreaksOf([&](auto& file) {
                field(file, 0)->set_type(google::protobuf::FieldDescriptorProto::TYPE_INT64);
              }),
              ElementsAre("p.M.a changed its type"));
  EXPECT_THAT(BreaksOf([&](auto& file) { field(file, 1)->set_type_name(".p.M"); }),
              ElementsAre("p.M.b changed its type"));
  EXPECT_THAT(BreaksOf([&](auto& file) {
                field(file, 0)->set_label(google::protobuf::FieldDescriptorProto::LABEL_REPEATED);
              }),
              ElementsAre("p.M.a changed its label"));
  EXPECT_THAT(BreaksOf([&](auto& file) { field(file, 0)->set_proto3_optional(true); }),
              ElementsAre("p.M.a changed its label"));
  EXPECT_THAT(BreaksOf([&](auto& file) { field(file, 0)->set_oneof_index(0); }),
              ElementsAre("p.M.a moved into or out of a oneof"));
  EXPECT_THAT(BreaksOf([&](auto& file) { field(file, 2)->clear_oneof_index(); }),
              ElementsAre("p.M.c moved into or out of a oneof"));
}

TEST(FindBreaksTest, ARenumberedFieldIsARemovedOne) {
  EXPECT_THAT(
      BreaksOf([](auto& file) { file.mutable_message_type(0)->mutable_field(0)->set_number(7); }),
      ElementsAre("p.M.a was removed and its number 1 is not reserved",
                  "p.M.a was removed and its name is not reserved"));
}

TEST(FindBreaksTest, LooksIntoNestedTypes) {
  EXPECT_THAT(BreaksOf([](auto& file) {
                file.mutable_message_type(0)
                    ->mutable_nested_type(0)
                    ->mutable_field(0)
                    ->mutable_options()
                    ->set_packed(false);
              }),
              ElementsAre("p.M.In.d changed its packing"));
  EXPECT_THAT(BreaksOf([](auto& file) {
                file.mutable_message_type(0)->mutable_enum_type(0)->mutable_value(0)->set_name("Z");
              }),
              ElementsAre("p.M.K.K0 was renamed to Z, or its number was used again"));
}

TEST(FindBreaksTest, ReservationsAreForEver) {
  EXPECT_THAT(BreaksOf([](auto& file) {
                file.mutable_message_type(0)->mutable_reserved_range(0)->set_end(9);
              }),
              ElementsAre("p.M gave up reserved numbers from 8"));
  EXPECT_THAT(BreaksOf([](auto& file) { file.mutable_message_type(0)->clear_reserved_name(); }),
              ElementsAre("p.M gave up the reserved name old"));
  EXPECT_THAT(BreaksOf([](auto& file) { file.mutable_enum_type(0)->clear_reserved_range(); }),
              ElementsAre("p.E gave up reserved numbers from 5"));
}

TEST(FindBreaksTest, FindsRemovedTypesAndValues) {
  EXPECT_THAT(BreaksOf([](auto& file) { file.mutable_message_type()->RemoveLast(); }),
              ElementsAre("p.N was removed or renamed"));
  EXPECT_THAT(BreaksOf([](auto& file) { file.clear_enum_type(); }),
              ElementsAre("p.E was removed or renamed"));
  EXPECT_THAT(BreaksOf([](auto& file) { file.clear_service(); }),
              ElementsAre("p.S was removed or renamed"));
  EXPECT_THAT(
      BreaksOf([](auto& file) { file.mutable_enum_type(0)->mutable_value()->RemoveLast(); }),
      ElementsAre("p.E.E1 was removed and its number 1 is not reserved",
                  "p.E.E1 was removed and its name is not reserved"));
}

TEST(FindBreaksTest, FindsEveryChangeOfAnRpc) {
  const auto rpc = [](FileDescriptorProto& file) {
    return file.mutable_service(0)->mutable_method(0);
  };
  EXPECT_THAT(BreaksOf([&](auto& file) { rpc(file)->set_name("Z"); }),
              ElementsAre("p.S.R was removed or renamed"));
  EXPECT_THAT(BreaksOf([&](auto& file) { rpc(file)->set_input_type(".p.N"); }),
              ElementsAre("p.S.R changed its request or response"));
  EXPECT_THAT(BreaksOf([&](auto& file) { rpc(file)->set_output_type(".p.M"); }),
              ElementsAre("p.S.R changed its request or response"));
  EXPECT_THAT(BreaksOf([&](auto& file) { rpc(file)->set_client_streaming(true); }),
              ElementsAre("p.S.R changed its streaming"));
  EXPECT_THAT(BreaksOf([&](auto& file) { rpc(file)->set_server_streaming(false); }),
              ElementsAre("p.S.R changed its streaming"));
}

}  // namespace
}  // namespace tacho::proto_test
