// Takes the next item of the member whose turn it is, again and again.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/base/status_macros.h"
#include "server/cluster/split/part_source.h"
#include "server/query/read/query_control.h"

namespace tacho::server::cluster {

// `Traits` has the types Response, a message, and Item, what a message is made of, and the
// functions Unpack(Response*, std::deque<Item>*) and IsBefore(const Item&, const Item&): whether
// the next item of one member comes before that of another one. Of members that are level the first
// comes first. Holds a message of each member. One thread at a time.
template <typename Traits>
class PartMerger {
 public:
  using Response = typename Traits::Response;
  using Item = typename Traits::Item;

  // Neither is owned.
  PartMerger(const PartSources<Response>& parts, const query::QueryControl& control)
      : parts_(parts), control_(control), next_(parts.size()), ended_(parts.size()) {}

  // `take` gets all items in order.
  //   NOT_FOUND  no member knows the job.
  //   others     of a member, `take` or control.Check().
  absl::Status ForEach(absl::FunctionRef<absl::Status(Item)> take) {
    for (;;) {
      TACHO_RETURN_IF_ERROR(control_.Check());
      std::deque<Item>* first = nullptr;
      for (size_t part = 0; part < parts_.size(); ++part) {
        TACHO_RETURN_IF_ERROR(Fill(part));
        if (next_[part].empty()) continue;
        if (first == nullptr || Traits::IsBefore(next_[part].front(), first->front())) {
          first = &next_[part];
        }
      }
      if (first == nullptr) return EndOfParts(parts_);
      Item item = std::move(first->front());
      first->pop_front();
      TACHO_RETURN_IF_ERROR(take(std::move(item)));
    }
  }

 private:
  absl::Status Fill(size_t part) {
    while (next_[part].empty() && !ended_[part]) {
      Response message;
      TACHO_ASSIGN_OR_RETURN(const bool more, parts_[part]->Next(&message));
      ended_[part] = !more;
      if (more) Traits::Unpack(&message, &next_[part]);
    }
    return absl::OkStatus();
  }

  const PartSources<Response>& parts_;
  const query::QueryControl& control_;
  std::vector<std::deque<Item>> next_;  // By part.
  std::vector<bool> ended_;
};

}  // namespace tacho::server::cluster
