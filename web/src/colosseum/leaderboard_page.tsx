// Ratings and joules of all models, from the revealed duels.
import { useMemo } from "preact/hooks";
import { useFetched } from "../app/api";
import { Loaded, Nothing } from "../app/parts";
import { linkTo } from "../app/router";
import type { Series } from "../charts/types";
import { FigureView } from "../components/figure";
import { TableView } from "../components/table";
import type { Figure, Table } from "../report/types";
import "./colosseum.css";
import type { Estimate, Leaderboard, Standing } from "./types";
import { joulesText, ratingText, shareText, tokenText, withInterval } from "./words";

function cell(estimate: Estimate | null, text: (value: number | null) => string) {
  return { text: withInterval(estimate, text), value: estimate?.value ?? null };
}

export function tableOf(board: Leaderboard): Table {
  return {
    id: "leaderboard",
    title: "Models",
    caption:
      "Ratings are Bradley-Terry strengths on Elo's scale: 400 points more are odds of ten to one. In brackets: 95 % intervals. " +
      "Energies are medians. Turned: of the votes for an answer that took more energy, the share that was taken back, or found not worth it.",
    columns: ["Model", "Rating", "Duels", "Wins", "Energy per answer", "Energy per output token", "Turned"],
    rows: board.models.map((standing) => [
      standing.model,
      cell(standing.rating, ratingText),
      { text: String(standing.games), value: standing.games },
      cell(standing.win_rate, shareText),
      cell(standing.response_joules, joulesText),
      cell(standing.token_joules, tokenText),
      cell(standing.turned, shareText),
    ]),
  };
}

function seriesOf(name: string, role: string, standings: Standing[]): Series {
  return {
    name,
    role,
    mark: "points",
    x: standings.map(({ response_joules }) => response_joules?.value ?? null),
    y: standings.map(({ rating }) => rating.value),
    low: standings.map(({ rating }) => rating.low),
    high: standings.map(({ rating }) => rating.high),
    labels: standings.map(({ model }) => model),
    labelled: standings.length <= 16,
  };
}

export function figureOf(board: Leaderboard): Figure {
  const known = board.models.filter(({ response_joules }) => response_joules !== null);
  const best = known
    .filter(({ frontier }) => frontier)
    .sort((one, other) => (one.response_joules?.value ?? 0) - (other.response_joules?.value ?? 0));
  const frontier: Series = {
    name: "frontier",
    role: "front",
    mark: "path",
    x: best.map(({ response_joules }) => response_joules?.value ?? null),
    y: best.map(({ rating }) => rating.value),
  };
  const others = known.filter((standing) => !standing.frontier);
  const points = [seriesOf("on the frontier", "zeus", best), seriesOf("beaten in both", "default", others)];
  return {
    id: "rating-against-energy",
    title: "Rating against energy",
    caption: "Nobody is rated higher and takes less than the models on the frontier. Whiskers: 95 % intervals of the rating.",
    panels: [
      {
        title: "",
        x: { title: "median energy of an answer, J", logarithmic: known.length > 1, from_zero: false },
        y: { title: "rating", logarithmic: false, from_zero: false },
        series: [...(best.length > 1 ? [frontier] : []), ...points.filter(({ x }) => x.length > 0)],
      },
    ],
  };
}

export function LeaderboardPage() {
  const board = useFetched<Leaderboard>("zeus/leaderboard", 10);
  const table = useMemo(() => board.value && tableOf(board.value), [board.value]);
  const figure = useMemo(() => board.value && figureOf(board.value), [board.value]);
  return (
    <div class="colosseum">
      <h1>Leaderboard</h1>
      <Loaded of={board}>
        {(value) =>
          value.models.length === 0 ? (
            <Nothing>
              No duel was voted on yet: <a href={linkTo("duel")}>fight the first one</a>.
            </Nothing>
          ) : (
            <>
              <p class="small">
                {value.duels} {value.duels === 1 ? "duel" : "duels"}; the votes that were cast blind count.
              </p>
              {table && <TableView table={table} anchor="leaderboard" />}
              {figure && figure.panels[0]!.series.length > 0 && <FigureView figure={figure} anchor="rating-against-energy" />}
            </>
          )
        }
      </Loaded>
    </div>
  );
}
