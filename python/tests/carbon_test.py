"""zeus.monitor.carbon, zeus.monitor.price and zeus.utils.lat_lon, with servers on this machine."""

import json
import math
import os
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

from node_testing import NodeTestCase

from zeus._core import carbon as core
from zeus.monitor import Measurement, ZeusMonitor
from zeus.monitor import carbon, price
from zeus.monitor._accounting import _Window, ask
from zeus.utils.lat_lon import get_ip_lat_long

ROOM_FOR_ROUNDING = 1e-9


class WebTestCase(unittest.TestCase):
    def serve(self, answers):
        """A server that gives these answers by path; its URL and what it was asked."""
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlsplit(self.path)
                asked.append((url.path, dict(parse_qsl(url.query)), self.headers))
                status, body = answers.get(url.path, (404, {}))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close(), thread.join()))
        return f"http://127.0.0.1:{server.server_address[1]}", asked


class ElectricityMapsTest(WebTestCase):
    LATEST = "/v3/carbon-intensity/latest"
    HISTORY = "/v3/carbon-intensity/history"

    def client(self, answers, **options):
        url, asked = self.serve(answers)
        return carbon.ElectrictyMapsClient((52.5, 13.4), base_url=url, **options), asked

    def test_the_present_and_the_past_are_asked_for_with_a_token(self):
        client, asked = self.client({
            self.LATEST: (200, {"carbonIntensity": 301}),
            self.HISTORY: (200, {"history": [
                {"carbonIntensity": 250, "datetime": "2024-05-01T10:00:00.000Z"},
                {"carbonIntensity": None, "datetime": "2024-05-01T11:00:00.000Z"}]}),
        }, token="secret", emission_factor_type="lifecycle")
        self.assertEqual(client.get_current_carbon_intensity(), 301)
        self.assertEqual(client.get_recent_carbon_intensity(),
                         {datetime(2024, 5, 1, 10, tzinfo=timezone.utc): 250})
        _, query, headers = asked[0]
        self.assertEqual(headers["auth-token"], "secret")
        self.assertEqual(query, {"lat": "52.5", "lon": "13.4", "disableEstimations": "true",
                                 "emissionFactorType": "lifecycle"})
        self.assertEqual((client.update_period, client.history_length), (timedelta(hours=1), 24))

    def test_what_goes_wrong_has_a_name(self):
        for status, body, error in (
            (401, {}, carbon.ZeusCarbonIntensityHTTPError),
            (500, {}, carbon.ZeusCarbonIntensityHTTPError),
            (200, b"no json", carbon.ZeusCarbonIntensityHTTPError),
            (404, {}, carbon.ZeusCarbonIntensityNotFoundError),
            (200, {"carbonIntensity": None}, carbon.ZeusCarbonIntensityNotFoundError),
        ):
            client, _ = self.client({self.LATEST: (status, body)})
            with self.subTest(status=status, body=body), self.assertRaises(error):
                client.get_current_carbon_intensity()
        nobody = carbon.ElectricityMapsClient((0, 0), base_url="http://127.0.0.1:1")
        with self.assertRaisesRegex(carbon.ZeusCarbonIntensityHTTPError, "no answer"):
            nobody.get_recent_carbon_intensity()

    def test_the_environment_has_the_token(self):
        with mock.patch.dict(os.environ, {"ELECTRICITY_MAPS_TOKEN": "from the environment"}):
            client, asked = self.client({self.LATEST: (200, {"carbonIntensity": 1})})
            client.get_current_carbon_intensity()
        self.assertEqual(asked[0][2]["auth-token"], "from the environment")

    def test_nonsense_is_refused(self):
        for arguments, error in {((91, 0),): ValueError, ((0, math.nan),): ValueError,
                                 ("Berlin",): TypeError, ((1,),): TypeError,
                                 ((0, 0), False, "indirect"): ValueError}.items():
            with self.subTest(arguments), self.assertRaises(error):
                carbon.ElectricityMapsClient(*arguments)


class Provider(carbon.CarbonIntensityProvider):
    def __init__(self, recent, current=None, period=3600):
        self.recent, self.current, self.period = recent, current, period

    def get_current_carbon_intensity(self):
        if self.current is None:
            raise AssertionError("nobody should ask")
        return self.current

    def get_recent_carbon_intensity(self):
        return self.recent() if callable(self.recent) else self.recent

    @property
    def update_period(self):
        return timedelta(seconds=self.period)


class EmissionTest(NodeTestCase):
    GPUS = "2xA100"

    def measure(self, provider, seconds=0.15, **options):
        with ZeusMonitor(cpu_indices=[]) as monitor:
            carbon_monitor = carbon.CarbonEmissionMonitor(provider, monitor=monitor, **options)
            carbon_monitor.begin_window("epoch")
            time.sleep(seconds)
            return carbon_monitor.end_window("epoch")

    def test_emissions_are_energy_times_intensity(self):
        result = self.measure(carbon.ConstantCarbonIntensity(360))
        self.assertEqual(list(result.gpu_carbon_emission), [0, 1])
        for gpu, joules in result.gpu_energy.items():
            self.assertAlmostEqual(result.gpu_carbon_emission[gpu], joules * 360 / 3.6e6,
                                   delta=ROOM_FOR_ROUNDING)
        self.assertAlmostEqual(result.total_carbon_emission, sum(result.gpu_energy.values()) * 1e-4)
        self.assertGreater(result.sigma["gpu:0"], 0)
        self.assertIsNone(result.cpu_carbon_emission)
        self.assertEqual(result.notes, [])

    def test_each_period_has_its_own_intensity(self):
        begin = datetime.now(timezone.utc).replace(microsecond=0)
        rows = {begin + timedelta(seconds=i): 1000.0 * (i >= 2) for i in range(-5, 10)}
        result = self.measure(Provider(rows, period=1), seconds=2.5)
        grams, joules = result.gpu_carbon_emission[0], result.gpu_energy[0]
        self.assertGreater(grams, 0)
        self.assertLess(grams, joules * 1000 / 3.6e6)

    def test_the_present_is_asked_for_where_the_history_ends_early(self):
        hour = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
        result = self.measure(Provider({hour - timedelta(hours=2): 5.0}, current=100.0))
        self.assertAlmostEqual(result.gpu_carbon_emission[0], result.gpu_energy[0] * 100 / 3.6e6)

    def test_a_provider_that_fails_costs_the_number_and_not_the_program(self):
        def fail():
            raise OSError("no network")
        with self.assertWarnsRegex(RuntimeWarning, "OSError: no network"):
            result = self.measure(Provider(fail))
        self.assertTrue(math.isnan(result.gpu_carbon_emission[0]))
        self.assertGreater(result.gpu_energy[0], 0)

    def test_a_provider_that_hangs_is_not_waited_for(self):
        over = threading.Event()
        self.addCleanup(over.set)
        with self.assertWarnsRegex(RuntimeWarning, "Provider did not answer within 0.1 s"):
            result = self.measure(Provider(over.wait), timeout=0.1)
        self.assertTrue(math.isnan(result.total_carbon_emission))

    def test_windows_overlap_and_are_misused_like_those_of_a_monitor(self):
        with carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), [0], []) as monitor:
            monitor.begin_window("a")
            monitor.begin_window("b")
            with self.assertRaises(ValueError):
                monitor.begin_window("a")
            monitor.end_window("a")
            monitor.end_window("b")
            with self.assertRaises(ValueError):
                monitor.end_window("b")
            with self.assertRaises(TypeError):
                carbon.CarbonEmissionMonitor("DE")

    def test_no_thread_stays_when_no_window_is_open(self):
        with carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), [0], []) as monitor:
            monitor.begin_window("a")
            thread = monitor._thread
            monitor.end_window("a")
            thread.join(timeout=30)
            self.assertFalse(thread.is_alive())


class PiecesTest(unittest.TestCase):
    def test_pieces_are_what_was_used_between_looks(self):
        window = _Window()
        window.looks = [Measurement(10.0, {0: 100.0}), Measurement(20.0, {0: math.nan})]
        pieces = window.pieces("gpu:0", Measurement(30.0, {0: 400.0}))
        self.assertEqual(pieces, [(0.0, 10.0, 100.0), (10.0, 30.0, 300.0)])

    def test_a_question_may_fail_but_not_last(self):
        self.assertEqual(ask(lambda: 3, 10, "it"), 3)
        with self.assertRaises(KeyError):
            ask(lambda: {}[0], 10, "it")


class PriceTest(NodeTestCase):
    GPUS = "A100"
    FLAT = {"energy_rate_structure": [[{"rate": 0.36}]],
            "energy_weekday_schedule": [[0] * 24] * 12,
            "energy_weekend_schedule": [[0] * 24] * 12}

    def provider(self, prices, zone="UTC"):
        class Fixed(price.ElectricityPriceProvider):
            timezone = zone
            currency = "EUR"

            def get_current_electricity_prices(self):
                return prices() if callable(prices) else prices
        return Fixed()

    def measure(self, provider, **options):
        with price.EnergyCostMonitor(provider, [0], [], **options) as monitor:
            monitor.begin_window("epoch")
            time.sleep(0.15)
            return monitor.end_window("epoch")

    def test_cost_is_energy_times_price(self):
        result = self.measure(self.provider(self.FLAT))
        self.assertAlmostEqual(result.gpu_energy_cost[0], result.gpu_energy[0] * 1e-7,
                               delta=ROOM_FOR_ROUNDING)
        self.assertEqual(result.currency, "EUR")
        self.assertAlmostEqual(result.total_energy_cost, result.gpu_energy_cost[0])

    def test_a_provider_that_fails_or_talks_nonsense_costs_the_number_only(self):
        def fail():
            raise OSError("no network")
        for prices, message in ((fail, "no network"), ({}, "the prices make no sense"),
                                ({**self.FLAT, "energy_weekday_schedule": [[0]]}, "12 months")):
            with self.assertWarnsRegex(RuntimeWarning, message):
                result = self.measure(self.provider(prices))
            self.assertTrue(math.isnan(result.gpu_energy_cost[0]))
            self.assertGreater(result.gpu_energy[0], 0)

    def test_what_was_used_before_decides_the_tier(self):
        tiers = [[{"rate": 0.36, "max": 100}, {"rate": 0.7, "adj": 0.02}]]
        prices = {**self.FLAT, "energy_rate_structure": tiers}
        below = self.measure(self.provider(prices), used_this_month=50)
        above = self.measure(self.provider(prices), used_this_month=500)
        self.assertAlmostEqual(below.gpu_energy_cost[0] / below.gpu_energy[0] * 3.6e6, 0.36)
        self.assertAlmostEqual(above.gpu_energy_cost[0] / above.gpu_energy[0] * 3.6e6, 0.72)


class TariffTest(unittest.TestCase):
    def cost(self, zone, moment):
        """Of a kilowatt-hour at a moment: 1 from 8 to 20 on weekdays in July, otherwise 0.1."""
        day = [0] * 8 + [1] * 12 + [0] * 4
        months = [[0] * 24] * 6 + [day] + [[0] * 24] * 5
        rates = price.rates_of({"energy_rate_structure": [[{"rate": 0.1}], [{"rate": 1.0}]],
                                "energy_weekday_schedule": months,
                                "energy_weekend_schedule": [[0] * 24] * 12})
        tariff = core.Tariff(rates, zone, "USD", 0.0, "test")
        seconds = datetime.fromisoformat(moment).timestamp()
        return round(tariff.cost([(seconds, seconds + 1, 3.6e6)], 0.0)[0], 6)

    def test_hours_days_and_months_are_local(self):
        self.assertEqual(self.cost("UTC", "2024-07-03T12:00:00+00:00"), 1.0)
        # Half past seven in Chicago, though noon in London.
        self.assertEqual(self.cost("America/Chicago", "2024-07-03T12:30:00+00:00"), 0.1)
        self.assertEqual(self.cost("America/Chicago", "2024-07-03T13:30:00+00:00"), 1.0)
        self.assertEqual(self.cost("UTC", "2024-07-06T12:00:00+00:00"), 0.1)  # A Saturday.
        self.assertEqual(self.cost("UTC", "2024-08-01T12:00:00+00:00"), 0.1)
        # The last hour of June here is July there.
        self.assertEqual(self.cost("Asia/Tokyo", "2024-06-30T23:30:00+00:00"), 1.0)

    def test_time_info_is_local(self):
        self.assertEqual(price.get_time_info(datetime(2024, 7, 6, 13)), (6, "Weekend", 13))
        self.assertEqual(price.get_time_info(datetime(2024, 1, 1, 0)), (0, "Weekday", 0))


class OpenEITest(WebTestCase):
    def client(self, answer, **options):
        url, asked = self.serve({"/utility_rates": answer})
        return price.OpenEIClient((38.6, -90.3), "Rate 1M", base_url=url, **options), asked

    def test_the_rate_is_found_by_its_label(self):
        rate = {"label": "Rate 1M", "energyratestructure": [[{"rate": 0.1}]],
                "energyweekdayschedule": [[0] * 24] * 12, "energyweekendschedule": [[0] * 24] * 12}
        client, asked = self.client((200, {"items": [{"label": "other"}, rate]}), api_key="key")
        prices = client.get_current_electricity_prices()
        self.assertEqual(prices["energy_rate_structure"], [[{"rate": 0.1}]])
        self.assertEqual(len(price.rates_of(prices)), 2 * 12 * 24)
        self.assertEqual(asked[0][1]["sector"], "Residential")
        self.assertEqual(asked[0][2]["X-Api-Key"], "key")

    def test_what_goes_wrong_has_a_name(self):
        for answer, error, message in (
            ((200, {"items": []}), price.ZeusElectricityPriceNotFoundError, 'no rate "Rate 1M"'),
            ((200, {"label": "Rate 1M"}), price.ZeusElectricityPriceNotFoundError,
             "has no energyratestructure"),
            ((403, {}), price.ZeusElectricityPriceHTTPError, "set OPENEI_API_KEY"),
            ((500, {}), price.ZeusElectricityPriceHTTPError, "answered 500"),
            ((200, b"x"), price.ZeusElectricityPriceHTTPError, "openei.org"),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                self.client(answer)[0].get_current_electricity_prices()


class PlaceTest(WebTestCase):
    def test_a_service_knows_where_this_machine_is(self):
        url, _ = self.serve({"/json": (200, {"loc": "52.52,13.40"})})
        self.assertEqual(get_ip_lat_long(base_url=url), (52.52, 13.40))

    def test_otherwise_one_sentence(self):
        url, _ = self.serve({"/json": (429, {})})
        with self.assertRaisesRegex(RuntimeError, r"did not say .* \(status 429\)"):
            get_ip_lat_long(base_url=url)
        with self.assertRaises(RuntimeError):
            get_ip_lat_long(base_url="http://127.0.0.1:1")


if __name__ == "__main__":
    unittest.main()
