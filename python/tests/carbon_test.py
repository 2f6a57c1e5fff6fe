"""zeus.monitor.carbon, zeus.monitor.price and zeus.utils.lat_lon, with servers on this machine."""

import json
import math
import os
import signal
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

from node_testing import NodeTestCase, wait_until

from zeus._core import carbon as core
from zeus.errors import ConflictError, InvalidArgumentError
from zeus.monitor import Measurement, ZeusMonitor, carbon, price
from zeus.monitor._accounting import _Window, ask
from zeus.utils.lat_lon import get_ip_lat_long

ROOM_FOR_ROUNDING = 1e-9
NO_NETWORK = mock.Mock(side_effect=OSError("no network"))


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
            (200, b"[" * 100_000, carbon.ZeusCarbonIntensityHTTPError),
            (200, {"carbonIntensity": -1}, carbon.ZeusCarbonIntensityHTTPError),
            (404, {}, carbon.ZeusCarbonIntensityNotFoundError),
            (200, {"carbonIntensity": None}, carbon.ZeusCarbonIntensityNotFoundError),
        ):
            client, _ = self.client({self.LATEST: (status, body)})
            with self.subTest(status=status, body=body), self.assertRaises(error):
                client.get_current_carbon_intensity()
        entry = {"carbonIntensity": 1}
        for history in ([5], 5, [entry], [{**entry, "datetime": "noon"}]):
            client, _ = self.client({self.HISTORY: (200, {"history": history})})
            with self.assertRaisesRegex(carbon.ZeusCarbonIntensityHTTPError, "makes no sense"):
                client.get_recent_carbon_intensity()
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
        for option, value, error in (("token", "a\r\nX-Evil: 1", ValueError),
                                     ("token", 5, TypeError), ("timeout", "x", TypeError)):
            with self.assertRaisesRegex(error, option):
                carbon.ElectricityMapsClient((0, 0), **{option: value})
        with self.assertRaisesRegex(ValueError, "grams_per_kwh is a finite number"):
            carbon.ConstantCarbonIntensity(10**400)


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

    def assert_unknown(self, result):
        for number in (result.gpu_carbon_emission[0], result.sigma["gpu:0"]):
            self.assertTrue(math.isnan(number))

    def test_emissions_are_energy_times_intensity(self):
        result = self.measure(carbon.ConstantCarbonIntensity(360))
        self.assertEqual(list(result.gpu_carbon_emission), [0, 1])
        for grams, joules in zip(result.gpu_carbon_emission.values(), result.gpu_energy.values()):
            self.assertAlmostEqual(grams, joules * 360 / 3.6e6, delta=ROOM_FOR_ROUNDING)
        self.assertAlmostEqual(result.total_carbon_emission, sum(result.gpu_energy.values()) * 1e-4)
        self.assertGreater(result.sigma["gpu:0"], 0)
        self.assertIsNone(result.cpu_carbon_emission)
        self.assertEqual(result.notes, [])

    def test_each_period_has_its_own_intensity(self):
        with ZeusMonitor(cpu_indices=[]) as monitor:
            # The intensity changes a second after the window has begun.
            rows = {}
            carbon_monitor = carbon.CarbonEmissionMonitor(Provider(rows, period=1), monitor=monitor)
            carbon_monitor.begin_window("epoch")
            change = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=2)
            rows |= {change + timedelta(seconds=i): 1000.0 * (i >= 0) for i in range(-90, 90)}
            wait_until(lambda: time.time() > change.timestamp() + 0.2)
            result = carbon_monitor.end_window("epoch")
        self.assertTrue(0 < result.gpu_carbon_emission[0] < result.gpu_energy[0] * 1000 / 3.6e6)

    def test_the_present_is_asked_for_where_the_history_ends_early(self):
        hour = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
        result = self.measure(Provider({hour - timedelta(hours=2): 5.0}, current=100.0))
        self.assertAlmostEqual(result.gpu_carbon_emission[0], result.gpu_energy[0] * 100 / 3.6e6)

    def test_a_period_may_be_a_number_of_seconds(self):
        class InSeconds(carbon.ConstantCarbonIntensity):
            update_period = 3600.0
        self.assertGreater(self.measure(InSeconds(100)).gpu_carbon_emission[0], 0)

    def test_a_provider_that_fails_costs_the_number_and_not_the_program(self):
        with self.assertWarnsRegex(RuntimeWarning, "OSError: no network"):
            result = self.measure(Provider(NO_NETWORK))
        self.assert_unknown(result)
        self.assertGreater(result.gpu_energy[0], 0)

    def test_a_provider_that_hangs_is_not_waited_for(self):
        over = threading.Event()
        self.addCleanup(over.set)
        with self.assertWarnsRegex(RuntimeWarning, "Provider did not answer within 0.1 s"):
            self.assert_unknown(self.measure(Provider(over.wait), timeout=0.1))

    def test_windows_overlap_and_are_misused_like_those_of_a_monitor(self):
        with carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), [0], []) as monitor:
            monitor.begin_window("a")
            monitor.begin_window("b")
            self.assertRaises(ValueError, monitor.begin_window, "a")
            monitor.end_window("a")
            monitor.end_window("b")
            self.assertRaises(ValueError, monitor.end_window, "b")
            self.assertRaises(TypeError, carbon.CarbonEmissionMonitor, "DE")
            with self.assertRaisesRegex(TypeError, "monitor is a ZeusMonitor, not 5"):
                carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), monitor=5)

    def test_a_period_that_makes_no_sense_is_refused_at_once(self):
        for period, error in (("x", TypeError), (math.nan, ValueError), (-1, ValueError)):
            with mock.patch.object(carbon.ConstantCarbonIntensity, "update_period", period), \
                    self.assertRaisesRegex(error, "update_period is"):
                carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), [0], [])

    def test_an_intensity_that_makes_no_sense_is_unknown(self):
        now = datetime.now(timezone.utc)
        for grams in (-1.0, math.nan, math.inf, "many"):
            for recent in ({now - timedelta(hours=1): 5.0, now: grams}, {}):
                provider = Provider(recent, current=grams)
                with self.assertWarnsRegex(RuntimeWarning, "an intensity of Provider is"):
                    self.assert_unknown(self.measure(provider, seconds=0.01))

    def test_a_forked_child_leaves_the_block_though_the_lock_is_held(self):
        for monitor in (carbon.CarbonEmissionMonitor(carbon.ConstantCarbonIntensity(1), [0]),
                        price.EnergyCostMonitor(PriceTest.provider(PriceTest.FLAT), [0])):
            with ThreadPoolExecutor(1) as thread, monitor:
                thread.submit(monitor._changed.acquire).result()
                child = os.fork()
                if child == 0:
                    signal.alarm(60)  # Ends it if it hangs.
                    try:
                        monitor.end_window("a")
                    except ConflictError:
                        monitor.close()
                        os._exit(0)
                    os._exit(1)
                _, status = os.waitpid(child, 0)
                thread.submit(monitor._changed.release).result()
                self.assertEqual(status, 0)

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
        self.assertRaises(KeyError, ask, lambda: {}[0], 10, "it")


class PriceTest(NodeTestCase):
    GPUS = "A100"
    FLAT = {"energy_rate_structure": [[{"rate": 0.36}]],
            "energy_weekday_schedule": [[0] * 24] * 12,
            "energy_weekend_schedule": [[0] * 24] * 12}

    @staticmethod
    def provider(prices, zone="UTC"):
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
        joules, cost = result.gpu_energy[0], result.gpu_energy_cost[0]
        self.assertAlmostEqual(cost, joules * 1e-7, delta=ROOM_FOR_ROUNDING)
        self.assertEqual(result.currency, "EUR")
        self.assertAlmostEqual(result.total_energy_cost, result.gpu_energy_cost[0])

    def test_a_provider_that_fails_or_talks_nonsense_costs_the_number_only(self):
        for prices, message in ((NO_NETWORK, "no network"), ({}, "the prices make no sense"),
                                ({**self.FLAT, "energy_weekday_schedule": [[0]]}, "12 months")):
            with self.assertWarnsRegex(RuntimeWarning, message):
                result = self.measure(self.provider(prices))
            self.assertTrue(math.isnan(result.gpu_energy_cost[0] + result.sigma["gpu:0"]))
            self.assertGreater(result.gpu_energy[0], 0)

    def test_what_was_used_before_decides_the_tier(self):
        tiers = [[{"rate": 0.36, "max": 100}, {"rate": 0.7, "adj": 0.02}]]
        prices = {**self.FLAT, "energy_rate_structure": tiers}
        for used, rate in ((50, 0.36), (500, 0.72)):
            result = self.measure(self.provider(prices), used_this_month=used)
            self.assertAlmostEqual(result.gpu_energy_cost[0] / result.gpu_energy[0] * 3.6e6, rate)

    def test_devices_and_windows_share_the_tiers(self):
        # 10 J are free, and each further one costs 1.
        tiers = [[{"rate": 0, "max": 10 / 3.6e6}, {"rate": 3.6e6}]]
        provider = self.provider({**self.FLAT, "energy_rate_structure": tiers})
        window = Measurement(1.0, {0: 2.9, 1: 9.0, 2: 9.0, 3: 9.0}), _Window()
        with price.EnergyCostMonitor(provider, [0], []) as monitor:
            with mock.patch.object(monitor, "_end", return_value=window):
                costs = [monitor.end_window("w").gpu_energy_cost for _ in range(3)]
        self.assertAlmostEqual(sum(sum(cost.values()) for cost in costs), 3 * 29.9 - 10)
        self.assertAlmostEqual(costs[0][3], 19.9 * 9 / 29.9)

    def test_windows_in_windows_count_once_and_months_begin_anew(self):
        with price.EnergyCostMonitor(self.provider(self.FLAT), [0], []) as monitor:
            monitor.begin_window("epoch")
            for _ in range(3):
                monitor.begin_window("step")
                time.sleep(0.05)
                monitor.end_window("step")
            joules = monitor.end_window("epoch").gpu_energy[0]
            self.assertAlmostEqual(monitor._used[1], joules, delta=0.2 * joules)
            later = time.time() + 32 * 86400
            monitor._prices([(later, later, 7.0)], monitor._used)
        self.assertEqual(monitor._used[1], 7.0)


class TariffTest(unittest.TestCase):
    def cost(self, zone, moment):
        """The price of a kilowatt-hour at a moment: 1 from 8 to 20 on weekdays in July, otherwise 0.1."""
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

    def test_prices_that_make_no_sense_are_refused(self):
        nan, inf = math.nan, math.inf
        for tier, rate in (({"rate": nan}, 0), ({"rate": inf}, 0), ({"rate": 1, "max": nan}, 0),
                           ({"rate": 1}, -1), ({"rate": 1}, 1)):
            prices = {**PriceTest.FLAT, "energy_rate_structure": [[tier]],
                      "energy_weekday_schedule": [[rate] * 24] * 12}
            with self.subTest(tier), self.assertRaisesRegex(InvalidArgumentError, "no sense"):
                price.rates_of(prices)

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
        self.assertRaises(RuntimeError, get_ip_lat_long, base_url="http://127.0.0.1:1")


if __name__ == "__main__":
    unittest.main()
