// Medians, ratios and how they are shown: on the terminal and in docs/benchmarks.md.
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function number(value) {
    if (!Number.isFinite(value))
        return "–";
    if (value >= 1000)
        return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, " ");
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

// `runs`: contender → list of results. Rows of figures, then rows of checks.
export function summarize(measure, runs, errors) {
    const figures = measure.contenders.flatMap((contender) => Object.entries(contender.figures).map(([key, unit]) => {
        const values = (runs.get(contender.name) ?? []).map((result) => result[key]);
        return { contender: contender.name, key, unit, runs: values.length, median: values.length ? median(values) : NaN,
                 min: Math.min(...values), max: Math.max(...values), error: errors.get(contender.name) };
    }));
    const find = (which) => (name, key) => {
        const row = figures.find((figure) => figure.contender === name && (!key || figure.key === key));
        return row?.runs ? row[which] : NaN;
    };
    const checks = measure.checks.map((check) => {
        const value = check.of(find("median"));
        // A busy neighbour only ever slows a run down: the ratio of the best runs shows how far noise made the other one.
        const best = check.unit ? NaN : check.of(find(check.less ? "min" : "max"));
        const target = check.at_least !== undefined ? `>= ${check.at_least}${check.aim ? ` (aim ${check.aim})` : ""}`
            : check.below !== undefined ? `< ${check.below}` : "";
        const reached = check.at_least !== undefined ? value >= check.at_least : value < check.below;
        const met = !target || !Number.isFinite(value) ? "" : reached ? "met" : "missed";
        return { label: check.label, value, best, unit: check.unit ?? "×", target, met };
    });
    return { name: measure.name, title: measure.title, figures, checks };
}

const span = (row) => row.error ? "failed" : row.runs > 1 ? `${number(row.min)} to ${number(row.max)}` : "";

export function terminal({ title, figures, checks }) {
    const lines = [`\n${title}`];
    for (const row of figures)
        lines.push(`  ${row.contender.padEnd(30)} ${number(row.median).padStart(10)} ${row.unit.padEnd(30)} ${span(row)}`);
    for (const check of checks) {
        const best = Number.isFinite(check.best) ? `best runs ${number(check.best)}` : "";
        lines.push(`  ${check.label.padEnd(46)} ${number(check.value).padStart(7)} ${check.unit.padEnd(7)} ` +
                   `${check.target.padEnd(18)} ${check.met.padEnd(7)} ${best}`.trimEnd());
    }
    return lines.join("\n");
}

export function markdown({ title, figures, checks }) {
    const lines = [`### ${title}`, "", "| | median | unit | lowest to highest |", "|---|--:|---|---|"];
    for (const row of figures)
        lines.push(`| ${row.contender} | ${number(row.median)} | ${row.unit} | ${span(row)} |`);
    lines.push("", "| | by medians | by best runs | target | |", "|---|--:|--:|---|---|");
    for (const check of checks)
        lines.push(`| ${check.label} | ${number(check.value)} ${check.unit} | ${number(check.best)} | ${check.target} | ${check.met} |`);
    return `${lines.join("\n")}\n`;
}
