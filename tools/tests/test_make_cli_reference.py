import unittest

import context  # noqa: F401  (makes the tools importable)

import make_cli_reference

HELP = {
    (): "Saves energy.\n\nSubcommands:\n  doctor                 Looks around\n"
        "                              and reports\n  sim                         Simulates\n",
    ("doctor",): "Looks around\nUsage: zeus doctor [OPTIONS]\n",
    ("sim",): "Simulates\n\nSubcommands:\n  start                       Starts\n",
    ("sim", "start"): "Starts\nUsage: /build/bin/zeus sim start\n",
}


class MakeCliReferenceTest(unittest.TestCase):
    def test_verbs_are_the_names_in_the_subcommands_section(self):
        self.assertEqual(make_cli_reference.verbs(HELP[()]), ["doctor", "sim"])
        self.assertEqual(make_cli_reference.verbs(HELP[("doctor",)]), [])

    def test_the_reference_follows_the_verbs_to_the_last(self):
        text = make_cli_reference.reference("/build/bin/zeus", lambda c: HELP[tuple(c[1:])])
        titles = [line for line in text.splitlines() if line.startswith("##")]
        self.assertEqual(titles, ["## zeus", "### zeus doctor", "### zeus sim", "#### zeus sim start"])

    def test_the_place_of_the_program_does_not_show(self):
        text = make_cli_reference.reference("/build/bin/zeus", lambda c: HELP[tuple(c[1:])])
        self.assertNotIn("/build", text)


if __name__ == "__main__":
    unittest.main()
