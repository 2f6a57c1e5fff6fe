"""The OpenAPI document, the metrics and the event stream of `zeus serve`, against what it does."""

import json
import re
import subprocess
import unittest

from serve_plans_test import spec
from serve_testing import JOB, REPORT, ServeTestCase

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def violations(value, schema, document, place="$"):
    """Lists the parts of a value that break its schema, for the keywords that our document uses."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        yield from violations(value, document["components"]["schemas"][name], document, place)
        return
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        yield f"{place} is no {types}: {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}: {value!r}"
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{place} is out of range: {value}"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from violations(item, schema.get("items", {}), document, f"{place}[{index}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place} lacks {name}"
        for name, item in value.items():
            other = schema.get("additionalProperties", True)
            if name in known:
                yield from violations(item, known[name], document, f"{place}.{name}")
            elif other is False:
                yield f"{place} has {name}"
            elif isinstance(other, dict):
                yield from violations(item, other, document, f"{place}.{name}")


class OpenApiTest(ServeTestCase):
    """Asks for everything that the document promises, and checks every answer against it."""

    def setUp(self):
        super().setUp()
        self.server = self.serve("--no-access-log")
        self.document = self.server.ask("GET", "/openapi.json").json
        self.seen = set()

    def operation(self, method, path):
        path = path.split("?")[0]
        for pattern, operations in self.document["paths"].items():
            expression = "^" + re.sub(r"\{\w+\}", "[^/]+", pattern) + "$"
            if re.match(expression, path) and method.lower() in operations:
                return pattern, operations[method.lower()]
        raise AssertionError(f"{method} {path} is not in the document")

    def ask(self, method, path, body=None, status=200, sensible=True):
        pattern, operation = self.operation(method, path)
        if body is not None and sensible:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual(list(violations(body, schema, self.document)), [])
        answer = self.server.ask(method, path, body)
        self.assertEqual(answer.status, status, answer.text)
        promised = operation["responses"].get(str(status))
        self.assertIsNotNone(promised, f"{method} {pattern} does not promise {status}")
        content = promised.get("content", {})
        if "application/json" in content:
            found = violations(answer.json, content["application/json"]["schema"], self.document)
            self.assertEqual(list(found), [], answer.text)
        elif not content:
            self.assertEqual(answer.text, "")
        self.seen.add((method, pattern, status))
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.json if is_json and answer.text.startswith(("{", "[")) else answer.text

    def walk_v1(self):
        job = "/v1/jobs/mnist"
        self.ask("POST", "/v1/jobs", JOB, 201)
        self.ask("POST", "/v1/jobs", JOB, 200)
        self.ask("POST", "/v1/jobs", JOB | {"eta": 1}, 409)
        self.ask("POST", "/v1/jobs", {}, 422, sensible=False)
        self.ask("GET", "/v1/jobs")
        self.ask("GET", "/v1/jobs?limit=0", status=422)
        self.ask("POST", job + "/trials", {}, 201)
        self.ask("POST", job + "/trials", {"recurrence": 0}, 409)
        self.ask("POST", job + "/trials", {"recurrence": 5}, 404)
        self.ask("POST", job + "/trials", {"lease_seconds": -1}, 422, sensible=False)
        trial = job + "/trials/1"
        self.ask("POST", trial + "/heartbeat")
        self.ask("POST", job + "/trials/9/heartbeat", status=404)
        self.ask("POST", trial + "/reports", REPORT | {"epoch": 2})
        self.ask("POST", trial + "/reports", REPORT, 409)
        self.ask("POST", trial + "/reports", {}, 422, sensible=False)
        self.ask("POST", job + "/trials/9/reports", REPORT, 404)
        self.ask("GET", trial)
        self.ask("GET", job + "/trials/9", status=404)
        self.ask("GET", job + "/trials")
        self.ask("GET", job + "/trials?limit=x", status=422)
        self.ask("GET", "/v1/jobs/nobody/trials", status=404)
        self.ask("POST", trial + "/end", {"status": "stopped", "reason": "enough"})
        self.ask("POST", trial + "/end", {}, 422, sensible=False)
        self.ask("POST", job + "/trials/9/end", {"status": "failed"}, 404)
        self.ask("POST", trial + "/heartbeat", status=409)
        cost = {"gpu_model": "A40", "batch_size": 64, "time_seconds": 1, "energy_joules": 100}
        self.ask("POST", job + "/epoch-costs", cost, 204)
        self.ask("POST", job + "/epoch-costs", {}, 422, sensible=False)
        self.ask("POST", "/v1/jobs/nobody/epoch-costs", cost, 404)
        self.ask("GET", job + "/arms?gpu_model=A40")
        self.ask("GET", job + "/arms?eta=1")
        self.ask("GET", job + "/arms?eta=2", status=422)
        self.ask("GET", "/v1/jobs/nobody/arms", status=404)
        self.ask("GET", "/v1/job-overviews?label=team")
        self.ask("GET", "/v1/job-overviews")
        self.ask("GET", "/v1/job-overviews?limit=0", status=422)
        self.ask("GET", job + "/overview")
        self.ask("GET", "/v1/jobs/nobody/overview", status=404)
        self.ask("GET", job + "/recurrences")
        self.ask("GET", job + "/recurrences?after=x", status=422)
        self.ask("GET", "/v1/jobs/nobody/recurrences", status=404)
        self.ask("GET", "/v1/savings?bounds=2026-01-01T00:00:00Z,2036-01-01T00:00:00%2B01:00")
        self.ask("GET", "/v1/savings", status=422)
        self.ask("GET", job + "/export")
        self.ask("GET", "/v1/jobs/nobody/export", status=404)
        self.ask("GET", job + "/savings?gpu_model=A40&baseline=mnist")
        self.ask("GET", "/v1/jobs/nobody/savings", status=404)
        self.ask("GET", job + "/events")
        self.ask("GET", job + "/events?after=x", status=422)
        self.ask("GET", "/v1/jobs/nobody/events", status=404)
        self.ask("GET", job)
        self.ask("DELETE", job, status=204)
        self.ask("DELETE", job, status=404)
        self.ask("GET", job, status=404)

    def walk_reference(self):
        spec = {"job_id": "a-1", "job_id_prefix": "a", "batch_sizes": [32, 64],
                "default_batch_size": 32, "max_power": 250, "number_of_gpus": 1,
                "gpu_model": "V100"}
        self.ask("POST", "/jobs", spec, 201)
        self.ask("POST", "/jobs", spec, 200)
        self.ask("POST", "/jobs", spec | {"eta_knob": 1}, 409)
        self.ask("POST", "/jobs", {}, 422, sensible=False)
        self.ask("GET", "/jobs/batch_size", status=422)
        self.ask("GET", "/jobs/batch_size?job_id=b", status=400)
        trial = self.ask("GET", "/jobs/batch_size?job_id=a-1")
        result = trial | {"time": 1, "energy": 1, "metric": 0, "current_epoch": 2}
        self.ask("POST", "/report", result)
        self.ask("POST", "/report", result | {"current_epoch": 1}, 409)
        self.ask("POST", "/report", {}, 422, sensible=False)
        self.ask("POST", "/report", result | {"trial_number": 9}, 404)
        self.ask("PATCH", "/trials", trial)
        self.ask("PATCH", "/trials", {}, 422, sensible=False)
        self.ask("PATCH", "/trials", trial | {"trial_number": 9}, 404)
        self.ask("DELETE", "/jobs?job_id=a-1")
        self.ask("DELETE", "/jobs?job_id=a-1", status=404)
        self.ask("DELETE", "/jobs", status=422)

    def walk_plans(self):
        plan = "/v1/plans/gpt"
        self.ask("POST", "/v1/plans", spec(), 201)
        self.ask("POST", "/v1/plans", spec(), 200)
        self.ask("POST", "/v1/plans", spec(microbatches=4), 409)
        self.ask("POST", "/v1/plans", {}, 422, sensible=False)
        self.ask("GET", "/v1/plans")
        self.ask("GET", "/v1/plans?limit=0", status=422)
        self.ask("GET", "/v1/plan-summaries")
        self.ask("GET", "/v1/plan-summaries?limit=0", status=422)
        self.ask("GET", plan)
        self.ask("GET", plan + "?after_version=1", status=204)
        self.ask("GET", plan + "?after_version=x", status=422)
        self.ask("GET", plan + "/frontier")
        self.ask("GET", plan + "/plan?slowdown=1.1")
        self.ask("GET", plan + "/plan", status=422)
        self.ask("POST", plan + "/pace", {"pace_seconds": 100.5, "rank": 3})
        self.ask("POST", plan + "/pace", {"pace_seconds": None})
        self.ask("POST", plan + "/pace", {}, 422, sensible=False)
        self.ask("DELETE", plan, status=204)
        for method, path, body in (("GET", plan, None), ("DELETE", plan, None),
                                   ("GET", plan + "/frontier", None),
                                   ("GET", plan + "/plan?slowdown=1", None),
                                   ("POST", plan + "/pace", {"pace_seconds": 1.5})):
            self.ask(method, path, body, 404)

    def walk_reference_pipelines(self):
        job = {"job_id": "", "pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2,
               "job_metadata": "microbatches=4"}
        rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0,
                "available_frequencies": [1410, 1200]}
        result = {"rank": 0, "iter_time": [1.0], "iter_energy": [100.0],
                  "time_breakdown": {"forward": [[0.1] * 4], "backward": [[0.2] * 4]},
                  "energy_breakdown": {"forward": [[30] * 4], "backward": [[60] * 4]}}
        self.ask("POST", "/register_job", {}, 422, sensible=False)
        self.ask("POST", "/register_job", job | {"job_metadata": "plan=nobody"}, 404)
        name = self.ask("POST", "/register_job", job).strip('"')
        self.ask("POST", f"/register_rank/{name}", rank)
        self.ask("POST", f"/register_rank/{name}", rank | {"pp_rank": 1}, 409)
        self.ask("POST", f"/register_rank/{name}", {}, 422, sensible=False)
        self.ask("POST", "/register_rank/nobody", rank, 404)
        self.ask("POST", f"/result/{name}", result, 409)
        other = rank | {"rank": 1, "pp_rank": 1}
        self.ask("POST", f"/register_rank/{name}", other)
        self.ask("GET", f"/schedule/{name}?rank=0")
        self.ask("GET", f"/schedule/{name}", status=422)
        self.ask("GET", "/schedule/nobody?rank=0", status=404)
        self.ask("POST", f"/result/{name}", result)
        self.ask("POST", f"/result/{name}", {}, 422, sensible=False)
        self.ask("POST", "/result/nobody", result, 404)
        name = self.ask("POST", "/register_job", job).strip('"')
        self.ask("POST", f"/register_rank/{name}", rank)
        self.ask("POST", f"/register_rank/{name}", other | {"available_frequencies": [900]})
        self.ask("GET", f"/schedule/{name}?rank=0", status=409)

    def test_every_route_and_status_of_the_document_is_as_it_says(self):
        self.assertTrue(self.document["openapi"].startswith("3.1"))
        self.walk_v1()
        self.walk_reference()
        self.walk_plans()
        self.walk_reference_pipelines()
        for path in ("/healthz", "/readyz", "/openapi.json", "/metrics", "/v1/namespaces", "/v1/me"):
            self.ask("GET", path)
        # EventsTest follows the stream of all jobs, which has no end.
        self.seen.add(("GET", "/v1/events", 200))
        promised = {(method.upper(), pattern, int(status))
                    for pattern, operations in self.document["paths"].items()
                    for method, operation in operations.items()
                    for status in operation["responses"]}
        # Without tokens nobody is turned away, and the database of this test always answers.
        elsewhere = {entry for entry in promised if entry[2] in (401, 403, 429, 503)}
        # A server with a forecast may answer that it is too early for a trial: ApiTest asks one.
        elsewhere.add(("POST", "/v1/jobs/{id}/trials", 200))
        self.assertEqual(promised - elsewhere, self.seen)


class MetricsTest(ServeTestCase):
    def test_promtool_accepts_the_metrics_and_they_count(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        self.start_trial(server)
        server.ask("GET", "/v1/jobs/nobody")
        server.ask("BREW", "/coffee")
        answer = server.ask("GET", "/metrics")
        self.assertIn("version=0.0.4", answer.headers["Content-Type"])
        checked = subprocess.run(["promtool", "check", "metrics"], input=answer.text, text=True,
                                 capture_output=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        for line in (
                'zeus_server_requests_total{route="/v1/jobs",method="POST",status="201"} 1',
                'zeus_server_requests_total{route="/v1/jobs/{id}",method="GET",status="404"} 1',
                'zeus_server_requests_total{route="none",method="other",status="404"} 1',
                'zeus_server_trial_answers_total{status="dispatched"} 1',
                "zeus_server_jobs_created_total 1"):
            self.assertIn(line + "\n", answer.text)
        self.assertIn('duration_seconds_count{route="/v1/jobs/{id}/trials"} 1\n', answer.text)


class EventsTest(ServeTestCase):
    def follow(self, server, path="/v1/jobs/mnist/events", **headers):
        connection = server.connect(timeout=60)
        connection.request("GET", path, headers={"Accept": "text/event-stream"} | headers)
        response = connection.getresponse()
        self.addCleanup(connection.close)
        self.addCleanup(response.close)
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["Content-Type"], "text/event-stream")
        return response

    def next_event(self, stream):
        fields = {}
        while True:
            line = stream.readline().decode().rstrip("\n")
            if not line and fields:
                return fields
            if line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                fields[name] = value

    def test_events_arrive_as_they_happen_and_again_from_where_one_was(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        stream = self.follow(server)
        first = self.next_event(stream)
        self.assertEqual((first["id"], first["event"]), ("1", "job_created"))
        self.start_trial(server)
        second = self.next_event(stream)
        self.assertEqual((second["id"], second["event"]), ("2", "trial_started"))
        detail = json.loads(second["data"])
        self.assertEqual((detail["sequence"], detail["trial"]), (2, 1))
        again = self.follow(server, **{"Last-Event-ID": "1"})
        self.assertEqual(self.next_event(again), second)

    def test_one_stream_has_the_events_of_all_jobs_and_survives_a_restart(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        stream = self.follow(server, "/v1/events")
        self.assertEqual(self.next_event(stream)["event"], "current")
        server.ask("POST", "/v1/jobs", JOB | {"id": "other"})
        self.assertEqual(self.next_event(stream)["event"], "job_created")
        self.start_trial(server)
        started = self.next_event(stream)
        self.assertEqual(json.loads(started["data"])["job_id"], "mnist")
        self.start_trial(server, "other")
        late = self.follow(server, "/v1/events", **{"Last-Event-ID": started["id"]})
        self.assertEqual(json.loads(self.next_event(late)["data"])["job_id"], "other")
        server.ask("DELETE", "/v1/jobs/other")
        self.assertEqual(self.next_event(late)["event"], "job_deleted")
        server.kill()
        again = self.serve("--no-access-log")
        stream = self.follow(again, "/v1/events", **{"Last-Event-ID": started["id"]})
        self.assertEqual(self.next_event(stream)["event"], "reset")

    def test_a_stream_ends_with_its_job(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        stream = self.follow(server)
        self.next_event(stream)
        server.ask("DELETE", "/v1/jobs/mnist")
        self.assertEqual(stream.read(), b"")

    def test_events_of_another_server_arrive_too(self):
        one = self.serve("--no-access-log")
        other = self.serve("--no-access-log")
        one.ask("POST", "/v1/jobs", JOB)
        stream = self.follow(one)
        self.next_event(stream)
        self.start_trial(other)
        self.assertEqual(self.next_event(stream)["event"], "trial_started")


if __name__ == "__main__":
    unittest.main()
