// Serves FakeObjectStore to other programs until it is killed.
//
//   tacho-fake-object-store    prints its endpoint as one line
#include <unistd.h>

#include <iostream>

#include "tests/support/fake_object_store.h"

int main() {
  const tacho::testing::FakeObjectStore store(tacho::testing::FakeObjectStore::Manner::kAws);
  std::cout << store.endpoint() << std::endl;
  ::pause();
}
