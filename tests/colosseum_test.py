#!/usr/bin/env python3
"""zeus llm colosseum: duels from the prompt to the leaderboard on simulated GPUs, blindness, votes that race with each
other and with kill -9, upstreams that end, and clients that leave."""

import asyncio
import concurrent.futures
import http.server
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import threading
import unittest

import postgres_testing
from colosseum_testing import ZEUS, Colosseum, ColosseumTestCase, chat_answer, wait_until

MODELS = {"llama-3.1-8b", "qwen3-14b"}


class DuelTest(ColosseumTestCase):
    """Real energies of simulated GPUs."""

    def test_a_duel_from_the_prompt_to_the_leaderboard(self):
        gateway, servers, server = self.metered("--max-tokens", "60", "--characters-per-second", "100000")
        self.assertEqual(set(server.json("GET", "/zeus/models")["models"]), MODELS)
        duel = server.begin("Why is the sky blue?", prefer="qwen3-14b")
        text_a, text_b, stage = server.follow(duel)
        self.assertEqual(stage, "voting")
        self.assertTrue(text_a and text_b)
        self.assertNotIn("energy", server.json("GET", f"/zeus/duels/{duel}"))
        voted = server.vote(duel, "a")
        energies = {side: voted["energy"][side]["energy_joules"] for side in "ab"}
        for side in "ab":
            self.assertTrue(voted["energy"][side]["final"])
            self.assertGreater(voted["energy"][side]["sigma_joules"], 0)
        if voted["stage"] == "weighing":
            self.assertNotIn("answers", voted)
            voted = server.json("POST", f"/zeus/duels/{duel}/worth", {"worth": False})
        self.assertEqual(voted["stage"], "revealed")
        self.assertEqual({voted["answers"][side]["model"] for side in "ab"}, MODELS)
        self.assertEqual(voted["preference"], "qwen3-14b")
        # The figures are those of the gateway.
        for record in gateway.get("/zeus/requests")["requests"]:
            side = next(side for side in "ab" if voted["answers"][side]["model"] == record["model"])
            self.assertAlmostEqual(record["energy_joules"], energies[side], places=6)
            self.assertEqual(record["output_tokens"], voted["answers"][side]["output_tokens"])
        changed = server.json("POST", f"/zeus/duels/{duel}/change", {"choice": "tie"})
        self.assertEqual((changed["votes"]["response"], changed["votes"]["change"]), ("a", "tie"))
        board = {}

        def counted():
            board.update(server.json("GET", "/zeus/leaderboard"))
            return board["duels"] == 1
        wait_until(counted, f"the duel never counted: {board}")
        winner, loser = board["models"]
        self.assertEqual(winner["model"], voted["answers"]["a"]["model"])
        self.assertGreater(winner["rating"]["value"], loser["rating"]["value"])
        self.assertAlmostEqual(winner["response_joules"]["value"], energies["a"], places=6)
        listed = server.json("GET", "/zeus/duels")["duels"]
        self.assertEqual([one["votes"] for one in listed], [changed["votes"]])
        self.assertNotIn(duel, json.dumps(listed))  # It is the key to the vote.
        code, errors = server.stop()
        self.assertEqual((code, errors), (0, ""))

    def test_the_dearer_answer_is_asked_about(self):
        _, _, server = self.metered("--max-tokens", "60", "--characters-per-second", "100000")
        # The larger model takes about twice as much for a token, and it is on either side.
        stages = set()
        for _ in range(40):
            voted = server.vote(server.answered(), "a")
            dearer = voted["comparison"]["verdict"] == "a_more"
            self.assertEqual(voted["stage"], "weighing" if dearer else "revealed")
            self.assertGreaterEqual(voted["comparison"]["ratio"], 1)
            stages.add(voted["stage"])
            if len(stages) == 2:
                return
        self.fail(f"of 40 duels all were {stages}")

    def test_with_upstreams_one_command_is_enough(self):
        _, servers, _ = self.metered()
        simulation = self.evaluated_environment("--name", "llm")
        server = Colosseum(self.database, "--upstream", servers[0].url, "--gpus", "0", "--upstream", servers[1].url,
                           "--gpus", "1", "--max-tokens", "20", environment=simulation)
        self.addCleanup(server.kill)
        wait_until(lambda: len(server.json("GET", "/zeus/models")["models"]) == 2, "both models never came")
        duel = server.answered()
        self.assertGreater(server.vote(duel, "tie")["energy"]["a"]["energy_joules"], 0)
        self.assertEqual(server.stop(), (0, ""))


class BlindnessTest(ColosseumTestCase):
    """Every byte that a browser gets before the vote."""

    def test_nothing_before_the_vote_tells_who_answers(self):
        gateway, servers, server = self.metered("--max-tokens", "40", "--characters-per-second", "100000")
        # Statistics of earlier duels are public; what is searched comes after them.
        earlier = server.answered()
        server.vote(earlier, "tie")
        board = server.ask("GET", "/zeus/leaderboard")[1]
        metrics = server.ask("GET", "/metrics")[1]
        server.received = b""
        duels = [server.begin(prompt) for prompt in ("one", "two", "three")]
        for duel in duels:
            server.ask("GET", f"/zeus/duels/{duel}")
            self.assertEqual(server.follow(duel)[2], "voting")
            server.events(duel, "3-3")
            server.ask("GET", f"/zeus/duels/{duel}")
            server.ask("POST", f"/zeus/duels/{duel}/worth", {"worth": True})
            server.ask("POST", f"/zeus/duels/{duel}/change", {"choice": "a"})
            server.ask("POST", f"/zeus/duels/{duel}/vote", {"choice": "yes"})
        server.json("POST", "/zeus/duels", {"prompt": ""}, 422)
        secrets = set(MODELS) | {"llama", "qwen", "-8b", "-14b", "gpu", "H100", "r-0", "127.0.0.1"}
        secrets |= {str(s.port) for s in servers} | {str(gateway.port)}
        for record in gateway.get("/zeus/requests")["requests"]:
            secrets.add(record["request"])
            for name, value in record.items():
                if isinstance(value, float) and abs(value) > 1e-3:
                    secrets.add(f"{value:.3f}")
                if name.endswith("_tokens") and value:
                    secrets.add(f'"{name}"')
                    secrets.add(f": {int(value)},")
        for word in ("energy_joules", "sigma", "watts", "tokens", "duration", "upstream", '"model'):
            secrets.add(word)
        text = server.received.decode(errors="replace")
        self.assertEqual([secret for secret in sorted(secrets) if secret in text], [])
        # Public statistics do not move either, except for counts of all duels.
        server.received = b""
        self.assertEqual(server.ask("GET", "/zeus/leaderboard")[1], board)
        for line in server.ask("GET", "/metrics")[1].decode().splitlines():
            self.assertNotRegex(line, "llama|qwen|joules")
        self.assertNotIn(b"llama", metrics)

    def test_swapped_answers_make_the_same_events(self):
        """Which side is slower cannot be seen as long as neither is complete."""
        gate = asyncio.Event()

        async def slowly(number, _writer):
            if number > 0:
                await asyncio.sleep(0.02)
        server = self.scripted("--max-duels", "8", left=chat_answer(["x" * 5] * 20),
                               right=chat_answer(["y" * 5] * 20, before=slowly))
        gate.set()
        for _ in range(4):
            for event in server.events(server.begin())[:-1]:
                self.assertEqual(len(event["a"]), len(event["b"]), event)

    def test_held_answers_come_when_both_are_complete(self):
        released = threading.Event()

        async def wait(number, _writer):
            if number == 1:
                await asyncio.get_running_loop().run_in_executor(None, released.wait, 60)
        server = self.scripted("--pace", "held", right=chat_answer(["right ", "words"], before=wait))
        duel = server.begin()
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.request("GET", f"/zeus/duels/{duel}/events")
        answer = connection.getresponse()
        released.set()
        texts = [json.loads(line[6:]) for line in answer.read().decode().splitlines() if line.startswith("data: ")]
        self.assertEqual(texts[-1]["stage"], "voting")
        self.assertEqual({"".join(t["a"] for t in texts), "".join(t["b"] for t in texts)}, {"left words", "right words"})

    def test_a_failing_upstream_unmasks_nobody(self):
        async def fail(number, writer):
            if number == 1:
                writer.close()
                return False
        server = self.scripted(right=chat_answer(["right ", "words"], before=fail))
        server.received = b""
        for _ in range(3):
            duel = server.begin()
            self.assertEqual(server.follow(duel)[2], "failed")
            self.assertEqual(server.json("GET", f"/zeus/duels/{duel}")["stage"], "failed")
            self.assertEqual(server.ask("POST", f"/zeus/duels/{duel}/vote", {"choice": "a"})[0], 410)
        for secret in (b"left-model", b"right-model", b"127.0.0.1", b"upstream", b"502"):
            self.assertNotIn(secret, server.received)


class VotesTest(ColosseumTestCase):
    """One vote for each duel and ballot, whatever happens."""

    def votes_in_database(self):
        database = sqlite3.connect(self.database.removeprefix("sqlite://"))
        try:
            return database.execute("SELECT duel_id, ballot, choice FROM duel_votes").fetchall()
        finally:
            database.close()

    def test_of_racing_votes_one_counts(self):
        server = self.scripted("--max-duels", "64", "--max-duels-per-address", "64")
        duels = [server.answered() for _ in range(8)]

        def vote(number):
            duel, choice = duels[number % 8], "ab"[number // 8 % 2]
            return duel, choice, server.ask("POST", f"/zeus/duels/{duel}/vote", {"choice": choice})[0]
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            outcomes = list(pool.map(vote, range(64)))
        stored = {duel: choice for duel, ballot, choice in self.votes_in_database() if ballot == "response"}
        self.assertEqual(len(self.votes_in_database()), 8)
        for duel, choice, status in outcomes:
            self.assertEqual(status, 200 if stored[duel] == choice else 409)

    def race_with_kills(self, database):
        """64 voters, each with duels of its own, while the server is killed again and again."""
        left = self.upstream(chat_answer(["left"]), models=("left-model",))
        right = self.upstream(chat_answer(["right"]), models=("right-model",))
        gateway = self.gateway("--upstream", left.url, "--models", "left-model",
                               "--upstream", right.url, "--models", "right-model")
        options = ("--max-duels", "64", "--max-duels-per-address", "64")
        server = self.colosseum(gateway, *options, database=database)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            duels = list(pool.map(lambda _: server.answered(), range(128)))
        port = server.port
        acknowledged, done = {}, threading.Event()
        seed = int(os.environ.get("COLOSSEUM_SEED", "7"))

        def vote(number):
            choice = random.Random(seed * 1000 + number).choice(["a", "b", "tie"])
            for duel in duels[2 * number:2 * number + 2]:
                while True:
                    try:
                        status, data = server.ask("POST", f"/zeus/duels/{duel}/vote", {"choice": choice})
                    except OSError:
                        status = 0
                    except Exception as error:  # The server died while it answered.
                        if "http.client" not in type(error).__module__:
                            raise
                        status = 0
                    if status == 200:
                        acknowledged[duel] = choice
                        break
                    if status not in (0, 503):
                        raise AssertionError(f"{status} {data!r}")
                    if done.wait(0.05):
                        raise AssertionError("the server never came back")

        kills = 0
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            voters = [pool.submit(vote, number) for number in range(64)]
            try:
                while not all(voter.done() for voter in voters) and kills < 40:
                    if kills < 4:  # Then the voters may finish.
                        before = len(acknowledged)
                        wait_until(lambda: len(acknowledged) > before + 8 or all(v.done() for v in voters),
                                   "no vote was accepted")
                        server.process.send_signal(signal.SIGKILL)
                        server.process.wait()
                        received = server.received
                        server.kill()
                        server = self.colosseum(gateway, *options, database=database, listen=f"127.0.0.1:{port}")
                        server.received = received
                        kills += 1
                    else:
                        concurrent.futures.wait(voters, timeout=60)
                        break
            finally:
                concurrent.futures.wait(voters, timeout=60)
                done.set()
            for voter in voters:
                voter.result()
        self.assertGreater(kills, 0)
        self.assertEqual(set(acknowledged), set(duels))
        for duel, choice in acknowledged.items():
            self.assertEqual(server.json("GET", f"/zeus/duels/{duel}")["votes"], {"response": choice})
        wait_until(lambda: server.json("GET", "/zeus/leaderboard")["duels"] == len(duels), "a duel was lost")
        return acknowledged

    def test_kill_9_loses_and_doubles_no_vote(self):
        acknowledged = self.race_with_kills(self.database)
        stored = self.votes_in_database()
        self.assertEqual(len(stored), len(acknowledged))
        self.assertEqual({duel: choice for duel, _, choice in stored}, acknowledged)

    @unittest.skipIf(postgres_testing.programs() is None, "PostgreSQL is not installed")
    def test_kill_9_loses_and_doubles_no_vote_in_postgresql(self):
        database = postgres_testing.PostgresServer()
        self.addCleanup(database.stop)
        self.race_with_kills(database.url)


class TroubleTest(ColosseumTestCase):
    def test_a_client_that_leaves_ends_the_answers(self):
        hold = threading.Event()
        self.addCleanup(hold.set)

        async def wait(number, _writer):
            if number == 1:
                await asyncio.get_running_loop().run_in_executor(None, hold.wait, 60)
        server = self.scripted("--answer-timeout", "2", left=chat_answer(["left ", "words"], before=wait))
        duel = server.begin()
        connection = server.connect()
        connection.request("GET", f"/zeus/duels/{duel}/events")
        connection.getresponse().readline()
        connection.close()
        wait_until(lambda: server.json("GET", f"/zeus/duels/{duel}")["stage"] == "failed", "the duel goes on")

    def test_sigterm_ends_running_duels_in_good_order(self):
        hold = threading.Event()
        self.addCleanup(hold.set)

        async def wait(number, _writer):
            if number == 1:
                await asyncio.get_running_loop().run_in_executor(None, hold.wait, 60)
        server = self.scripted(left=chat_answer(["left ", "words"], before=wait))
        duel = server.begin()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            followed = pool.submit(server.follow, duel)
            wait_until(lambda: "zeus_server_connections 2" in server.ask("GET", "/metrics")[1].decode(), "nobody follows")
            self.assertEqual(server.stop(), (0, ""))
            self.assertEqual(followed.result()[2], "failed")

    def test_too_many_duels_are_refused(self):
        hold = threading.Event()
        self.addCleanup(hold.set)

        async def wait(number, _writer):
            await asyncio.get_running_loop().run_in_executor(None, hold.wait, 60)
        server = self.scripted("--max-duels", "2", left=chat_answer(["left"], before=wait))
        duels = [server.begin(), server.begin()]
        refused = server.json("POST", "/zeus/duels", {"prompt": "why?"}, 429)
        self.assertIn("try again", refused["error"]["message"])
        hold.set()
        for duel in duels:
            self.assertEqual(server.follow(duel)[2], "voting")
        server.answered()

    def test_bad_requests_are_refused(self):
        server = self.scripted("--max-prompt", "100")
        for body, sentence in ((b"\xff", "JSON"), (b"", "JSON"), ("[]", "object"), ({}, "prompt"), ({"prompt": 1}, "prompt"),
                               ({"prompt": " "}, "empty"), ({"prompt": "x" * 101}, "100 are the most"),
                               ({"prompt": "a\0b"}, "zero byte"), ({"prompt": "x", "prefer": "gpt"}, "gpt")):
            refused = server.json("POST", "/zeus/duels", body, 422)
            self.assertIn(sentence, refused["error"]["message"])
        self.assertEqual(server.ask("POST", "/zeus/duels", json.dumps({"prompt": "x" * (2 << 20)}))[0], 413)
        self.assertEqual(server.ask("GET", "/zeus/duels/unknown")[0], 404)
        self.assertEqual(server.ask("POST", "/zeus/duels/unknown/vote", {"choice": "a"})[0], 404)
        foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        self.assertEqual(server.ask("POST", "/zeus/duels", {"prompt": "x"}, foreign)[0], 403)
        self.assertEqual(server.ask("GET", "/zeus/models", headers={"Host": "evil.example"})[0], 403)

    def test_without_a_gateway_it_says_so(self):
        server = Colosseum(self.database, "--gateway", "http://127.0.0.1:1", environment=self.environment)
        self.addCleanup(server.kill)
        refused = server.json("POST", "/zeus/duels", {"prompt": "x"}, 503)
        self.assertIn("gateway", refused["error"]["message"])
        self.assertNotIn("127.0.0.1", refused["error"]["message"])
        self.assertEqual(server.ask("GET", "/healthz")[0], 200)

    def test_a_gateway_that_hangs_holds_one_caller(self):
        """The others get the models that were known before: a server has few threads for reading."""
        hangs, asked, released = threading.Event(), threading.Event(), threading.Event()

        class Gateway(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if hangs.is_set():
                    asked.set()
                    released.wait(60)
                body = json.dumps({"data": [{"id": "one"}, {"id": "two"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        self.addCleanup(gateway.server_close)
        threading.Thread(target=gateway.serve_forever).start()
        self.addCleanup(gateway.shutdown)
        self.addCleanup(released.set)
        server = Colosseum(self.database, "--gateway", f"http://127.0.0.1:{gateway.server_port}")
        self.addCleanup(server.kill)
        known = server.json("GET", "/zeus/models")
        hangs.set()

        def ask_until_held():
            while not asked.is_set():
                server.ask("GET", "/zeus/models")
        with concurrent.futures.ThreadPoolExecutor(13) as pool:
            held = pool.submit(ask_until_held)
            asked.wait(60)
            others = [pool.submit(server.json, "GET", "/zeus/models") for _ in range(12)]
            self.assertEqual([other.result(60) for other in others], [known] * 12)
            self.assertEqual(server.ask("GET", "/zeus/duels/unknown")[0], 404)
            released.set()
            held.result(60)
        self.assertEqual(server.stop()[0], 0)

    def test_text_is_kept_only_with_consent(self):
        for consent in (False, True):
            database = os.path.join(self.directory.name, f"{consent}.db")
            left = self.upstream(chat_answer(["left-words"]), models=("left-model",))
            right = self.upstream(chat_answer(["right-words"]), models=("right-model",))
            gateway = self.gateway("--upstream", left.url, "--models", "left-model",
                                   "--upstream", right.url, "--models", "right-model")
            server = self.colosseum(gateway, *(["--store-text"] if consent else []), database=f"sqlite://{database}")
            duel = server.answered("a-secret-prompt")
            revealed = server.vote(duel, "tie")
            self.assertEqual("prompt" in revealed, consent)
            server.stop()
            kept = b"".join(file.read_bytes() for file in pathlib.Path(self.directory.name).glob(f"{consent}.db*"))
            for text in (b"a-secret-prompt", b"left-words"):
                self.assertEqual(text in kept, consent)

    def test_tokens_guard_everything_but_the_page(self):
        tokens = os.path.join(self.directory.name, "tokens")
        made = subprocess.run([ZEUS, "llm", "colosseum", "--tokens", tokens, "--new-token", "anna"],
                              capture_output=True, text=True, check=True)
        server = self.scripted("--tokens", tokens)
        self.assertEqual(server.ask("POST", "/zeus/duels", {"prompt": "x"})[0], 401)
        self.assertEqual(server.ask("GET", "/zeus/leaderboard")[0], 401)
        self.assertEqual(server.ask("GET", "/app.json")[0], 200)
        bearer = {"Authorization": f"Bearer {made.stdout.strip()}"}
        self.assertEqual(server.ask("POST", "/zeus/duels", {"prompt": "x"}, bearer)[0], 201)

    def test_the_reference_clients_flow(self):
        server = self.scripted()
        models = server.json("GET", "/models")["available_models"]
        self.assertEqual(models, ["left-model", "right-model"])

        def side(index):
            return server.ask("POST", "/prompt", {"request_id": "5e3a-reference", "prompt": "why?", "model_index": index,
                                                  "model_preference": "Two random models"})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(side, (0, 1)))
        texts = []
        for status, data in answers:
            self.assertEqual(status, 200)
            self.assertTrue(data.endswith(b"\0"))
            texts.append("".join(json.loads(part) for part in data.split(b"\0") if part))
        self.assertEqual(set(texts), {"left words", "right words"})
        voted = server.json("POST", "/response_vote", {"request_id": "5e3a-reference", "victory_index": 0})
        self.assertEqual(set(voted["model_names"]), set(models))
        self.assertEqual(voted["energy_consumptions"], [None, None])
        self.assertEqual(server.ask("POST", "/energy_vote", {"request_id": "5e3a-reference", "is_worth": True})[0], 409)
        self.assertEqual(server.ask("GET", "/health")[0], 200)


if __name__ == "__main__":
    unittest.main()
