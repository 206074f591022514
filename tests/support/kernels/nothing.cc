// SPDX-License-Identifier: Apache-2.0
// A shared object that registers nothing.
extern "C" __attribute__((visibility("default"))) int flagos_nothing();

int flagos_nothing() { return 0; }
