import unittest

from context import RepositoryTest

import check_layers


class CheckLayersTest(RepositoryTest):
    def mistakes(self, path: str, include: str) -> list[str]:
        self.add(path, f'#include "{include}"\n')
        return check_layers.mistakes(self.root)

    def test_a_layer_may_include_the_layers_below_it(self):
        self.assertEqual(self.mistakes("zeus/monitor/a.cc", "zeus/device/gpu.h"), [])

    def test_a_layer_must_not_include_the_layers_above_it(self):
        self.assertEqual(self.mistakes("zeus/base/a.h", "zeus/device/gpu.h"),
                         ["zeus/base/a.h: base must not include device"])

    def test_an_unknown_layer_is_named(self):
        self.assertIn("magic is not a layer", self.mistakes("zeus/magic/a.h", "zeus/base/units.h")[0])

    def test_the_library_must_not_include_the_programs(self):
        self.assertTrue(self.mistakes("zeus/device/a.cc", "apps/zeus/commands.h"))

    def test_programs_may_include_everything(self):
        self.assertEqual(self.mistakes("apps/zeus/main.cc", "zeus/replay/policy.h"), [])

    def test_includes_start_at_the_root_of_the_repository(self):
        self.assertTrue(self.mistakes("zeus/device/a.cc", "gpu.h"))

    def test_vendor_folders_do_not_know_each_other(self):
        self.assertEqual(self.mistakes("zeus/device/nvml/a.cc", "zeus/device/sim/b.h"),
                         ["zeus/device/nvml/a.cc: device/nvml must not know device/sim"])

    def test_a_vendor_folder_knows_itself_and_the_interfaces(self):
        self.assertEqual(self.mistakes("zeus/device/nvml/a.cc", "zeus/device/nvml/b.h"), [])
        self.assertEqual(self.mistakes("zeus/device/nvml/c.cc", "zeus/device/gpu.h"), [])

    def test_only_discovery_composes_vendors(self):
        self.assertEqual(self.mistakes("zeus/device/node.cc", "zeus/device/amd/b.h"), [])
        self.assertTrue(self.mistakes("zeus/device/gpu.cc", "zeus/device/amd/b.h"))

    def test_tests_may_mix_vendors(self):
        self.assertEqual(self.mistakes("zeus/device/nvml/a_test.cc", "zeus/device/sim/b.h"), [])

    def test_a_layer_above_may_use_a_vendor_folder(self):
        self.assertEqual(self.mistakes("zeus/replay/a.cc", "zeus/device/sim/b.h"), [])

    def test_product_code_must_not_include_test_code(self):
        self.assertTrue(self.mistakes("zeus/device/a.cc", "zeus/base/testing/directory.h"))
        self.assertEqual(len(self.mistakes("zeus/device/a_test.cc", "zeus/base/testing/d.h")), 1)

    def test_a_folder_of_a_layer_may_be_a_layer_itself(self):
        self.assertEqual(self.mistakes("zeus/optimizer/pipeline/a.cc", "zeus/device/gpu.h"),
                         ["zeus/optimizer/pipeline/a.cc: optimizer/pipeline must not include device"])

    def test_a_library_links_only_what_it_may_include(self):
        self.add("zeus/server/CMakeLists.txt",
                 "zeus_library(server SOURCES api.cc HEADERS api.h DEPENDS zeus::pipeline zeus::device)\n")
        self.assertEqual(check_layers.linked(self.root),
                         ["zeus/server/CMakeLists.txt: server must not link device"])

    def test_an_entry_that_no_include_needs_is_named(self):
        self.add("zeus/export/a.cc", '#include "zeus/base/units.h"\n')
        self.assertNotIn("check_layers.py: export does not use base, take it out of the table",
                         check_layers.unused(self.root))
        self.assertIn("check_layers.py: export does not use device, take it out of the table",
                      check_layers.unused(self.root))

    def test_the_page_says_what_the_table_says(self):
        self.add("docs/architecture.md", "| `zeus/export` | files | base | exists |\n"
                                         "| `zeus/report` | figures | base | exists |\n")
        found = "\n".join(check_layers.undocumented(self.root))
        self.assertIn("`zeus/export` must say", found)
        self.assertNotIn("`zeus/report` must say", found)


if __name__ == "__main__":
    unittest.main()
