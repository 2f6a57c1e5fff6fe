import unittest

import context  # noqa: F401  (makes the tools importable)

import make_cli_reference

ZEUS, ZEUSD = "/build/bin/zeus", "/build/bin/zeusd"
HELP = {
    (ZEUS,): "Saves energy.\n\nSubcommands:\n  doctor                 Looks around\n"
             "                              and reports\n  sim                         Simulates\n",
    (ZEUS, "doctor"): "Looks around\nUsage: zeus doctor [OPTIONS]\n",
    (ZEUS, "sim"): "Simulates\n\nSubcommands:\n  start                       Starts\n",
    (ZEUS, "sim", "start"): "Starts\nUsage: /build/bin/zeus sim start\n",
    (ZEUSD,): "Lends knobs.\nUsage: /build/bin/zeusd SUBCOMMAND\n\nSubcommands:\n  serve                       Serves\n",
    (ZEUSD, "serve"): "Serves\nUsage: /build/bin/zeusd serve\n",
}


def ask(command):
    return HELP[tuple(command)]


class MakeCliReferenceTest(unittest.TestCase):
    def test_verbs_are_the_names_in_the_subcommands_section(self):
        self.assertEqual(make_cli_reference.verbs(HELP[(ZEUS,)]), ["doctor", "sim"])
        self.assertEqual(make_cli_reference.verbs(HELP[(ZEUS, "doctor")]), [])

    def test_the_reference_follows_the_verbs_of_both_programs_to_the_last(self):
        text = make_cli_reference.reference(ZEUS, ask)
        titles = [line for line in text.splitlines() if line.startswith("##")]
        self.assertEqual(titles, ["## zeus", "### zeus doctor", "### zeus sim", "#### zeus sim start",
                                  "## zeusd", "### zeusd serve"])

    def test_the_place_of_the_programs_does_not_show(self):
        self.assertNotIn("/build", make_cli_reference.reference(ZEUS, ask))


if __name__ == "__main__":
    unittest.main()
