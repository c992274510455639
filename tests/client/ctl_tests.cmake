# Tests of client/ctl, included by the CMakeLists.txt beside it.
