// Draws the figures when they come into view, in the colours of the theme, and serves the buttons.
(() => {
  "use strict";
  const body = document.body;
  const root = document.documentElement;
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const toLight = Object.fromEntries(Object.entries(palette).map(([light, dark]) => [dark, light]));
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const handheld = matchMedia("(pointer: coarse), (max-width: 560px)");
  const figures = [...document.querySelectorAll("[data-figure]")].map((element) => ({
    element,
    spec: null,
    plot: element.querySelector(".plot"),
    drawn: false,
    dark: false,
  }));
  let printing = false;

  const isDark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);

  // Every value under a key that ends in "color" is swapped for its twin; an opacity (#rrggbbaa) is kept.
  const swapColor = (value, twins) => {
    if (Array.isArray(value)) return value.map((item) => swapColor(item, twins));
    if (typeof value !== "string" || value[0] !== "#") return value;
    const twin = twins[value.slice(0, 7)];
    return twin ? twin + value.slice(7) : value;
  };
  const recolored = (value, twins) => {
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map((item) => recolored(item, twins)) : value;
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        const nested = item !== null && typeof item === "object" && !Array.isArray(item);
        return [key, /color$/.test(key) && !nested ? swapColor(item, twins) : recolored(item, twins)];
      })
    );
  };

  const specOf = (figure) => {
    if (figure.spec) return figure.spec;
    figure.spec = JSON.parse(figure.element.querySelector('script[type="application/json"]').textContent);
    const layout = figure.spec.plotly.layout ?? {};
    // Axes without a given range follow what is chosen; read before Plotly writes its own ranges into them.
    const free = ["xaxis", "yaxis", "yaxis2"].filter((name) => layout[name] && !layout[name].range);
    figure.free = Object.fromEntries(free.map((name) => [`${name}.autorange`, layout[name].autorange ?? true]));
    return figure.spec;
  };
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: handheld.matches ? false : "hover",
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]],
  };

  function count() {
    body.dataset.drawn = `${figures.filter((figure) => figure.drawn).length}/${figures.length}`;
  }

  function draw(figure) {
    if (figure.drawn) return;
    figure.drawn = true;
    if (figure.plot) {
      try {
        const { data, layout } = specOf(figure).plotly;
        figure.dark = isDark();
        const shown = figure.dark ? recolored({ data, layout }, palette) : { data, layout: { ...layout } };
        if (handheld.matches) {
          shown.layout.dragmode = false; // a finger on the figure scrolls the page
          shown.layout.height += 64; // and the legend needs more than one line
        }
        Plotly.newPlot(figure.plot, shown.data, shown.layout, config);
      } catch (error) {
        figure.drawn = false;
        figure.plot.textContent = `This figure could not be drawn: ${error.message}`;
        console.error(error);
      }
    }
    count();
  }
  const drawAll = () => figures.forEach(draw);

  function retheme() {
    for (const figure of figures) {
      if (!figure.plot || !figure.drawn || figure.dark === isDark()) continue;
      figure.dark = isDark();
      const twins = figure.dark ? palette : toLight;
      const { data, layout } = recolored({ data: figure.plot.data, layout: figure.plot.layout }, twins);
      Plotly.react(figure.plot, data, layout, config);
    }
  }

  // Saving: images always in the light colours, with the title, as the reader has zoomed and chosen.
  function imageOf(figure) {
    const spec = specOf(figure);
    const live = figure.plot && figure.drawn ? { data: figure.plot.data, layout: figure.plot.layout } : spec.plotly;
    const { data, layout } = recolored(live, figure.plot && figure.dark ? toLight : {});
    const text = spec.title.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
    layout.title = { text, x: 0.01, xanchor: "left", y: 0.985, yanchor: "top", yref: "container", font: { size: 16 } };
    layout.margin = { ...layout.margin, t: (layout.margin?.t ?? 40) + 36 };
    layout.height = (layout.height ?? 400) + 36;
    return { data, layout };
  }
  function csvOf({ table, note }) {
    // As attnlab/_csv.py: text that a spreadsheet would take for a formula gets an apostrophe.
    const isFormula = (text) => /^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    const cell = (value) => {
      const plain = value === null ? "" : String(value);
      const text = typeof value === "string" && isFormula(plain) ? `'${plain}` : plain;
      return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const columns = Object.values(table);
    const length = Math.max(0, ...columns.map((column) => column.length));
    const rows = [Object.keys(table)];
    for (let k = 0; k < length; k++) rows.push(columns.map((column) => column[k] ?? null));
    const remark = `# 6 significant digits. ${note}`.trim();
    return [remark, ...rows.map((row) => row.map(cell).join(","))].join("\r\n") + "\r\n";
  }
  function saveText(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  async function save(figure, format) {
    const filename = figure.element.dataset.figure;
    if (format === "csv") return saveText(`${filename}.csv`, csvOf(specOf(figure)));
    const image = imageOf(figure);
    const size = { width: 900, height: image.layout.height, scale: format === "png" ? 2 : 1 };
    return Plotly.downloadImage({ ...image, config }, { format, filename, ...size });
  }

  function choose(figure, choice) {
    const traces = figure.plot.data;
    const visible = traces.map(({ meta, visible }) => {
      if (meta?.choice === undefined) return visible ?? true;
      return meta.choice === choice ? meta.visible : false;
    });
    const titles = specOf(figure).plotly.layout.meta?.titles?.[choice]; // each drawing may name its axes
    Plotly.restyle(figure.plot, { visible }).then(() => Plotly.relayout(figure.plot, { ...figure.free, ...titles }));
  }
  function showFrame(figure, k) {
    const { plotly, shaded } = specOf(figure);
    const name = shaded ? shaded.steps[k] : plotly.frames[k].name;
    figure.element.querySelector("output").textContent = name;
    figure.element.querySelector("[data-frame]").setAttribute("aria-valuetext", name);
    if (shaded) return shade(figure, k);
    const frame = plotly.frames[k];
    frame.data.forEach(({ x, y }, place) => Plotly.restyle(figure.plot, { x: [x], y: [y] }, [frame.traces[place]]));
  }
  // Words never change: only how strong they are shaded, and the remark below each sentence.
  function shade(figure, k) {
    figure.items ??= [...figure.element.querySelectorAll(".shaded > li")].map((item) => ({
      words: [...item.querySelectorAll(".said > span")],
      remark: item.querySelector("[data-remark]"),
    }));
    specOf(figure).shaded.sentences.forEach(({ shades, remarks, right }, place) => {
      const item = figure.items[place];
      item.words.forEach((word, at) => word.style.setProperty("--shade", `${shades[k][at]}%`));
      item.remark.textContent = remarks[k];
      item.remark.dataset.right = right[k] ? "yes" : "no";
    });
  }
  function play(figure, button, slider) {
    if (figure.timer) return stop(figure, button);
    if (slider.value === slider.max) slider.value = 0;
    button.textContent = "Pause";
    showFrame(figure, Number(slider.value));
    figure.timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      showFrame(figure, Number(slider.value));
      if (slider.value === slider.max) stop(figure, button);
    }, 180);
  }
  function stop(figure, button) {
    clearInterval(figure.timer);
    figure.timer = null;
    button.textContent = "Play";
  }

  for (const figure of figures) {
    const { element } = figure;
    element.querySelectorAll("[data-save]").forEach((button) =>
      button.addEventListener("click", () => save(figure, button.dataset.save))
    );
    const select = element.querySelector("[data-choice]");
    select?.addEventListener("change", () => (draw(figure), choose(figure, Number(select.value))));
    const slider = element.querySelector("[data-frame]");
    const button = element.querySelector("[data-play]");
    slider?.addEventListener("input", () => {
      draw(figure);
      stop(figure, button);
      showFrame(figure, Number(slider.value));
    });
    button?.addEventListener("click", () => (draw(figure), play(figure, button, slider)));
  }

  document.querySelectorAll("[data-copy]").forEach((button) =>
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code); // no clipboard for this file: select, so that Ctrl-C copies
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 1600);
    })
  );

  const toggle = document.querySelector("[data-theme-toggle]");
  const nameToggle = () => (toggle.textContent = isDark() ? "Light" : "Dark");
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("attnlab-theme", root.dataset.theme);
    } catch {
      // No storage: the choice lasts as long as the page is open.
    }
    nameToggle();
    retheme();
  });
  systemDark.addEventListener("change", () => (nameToggle(), retheme()));
  nameToggle();

  const PRINTED_WIDTH = 660; // A4 less its margins, in CSS pixels
  const shadedOnes = () => figures.filter(({ element }) => element.dataset.kind === "shaded");
  const sliderOf = ({ element }) => element.querySelector("[data-frame]");
  addEventListener("beforeprint", () => {
    printing = true;
    shadedOnes().forEach((figure) => showFrame(figure, Number(sliderOf(figure).max))); // paper has the last step
    drawAll();
    retheme();
    figures.forEach(({ plot }) => plot && Plotly.relayout(plot, { width: PRINTED_WIDTH, autosize: false }));
  });
  addEventListener("afterprint", () => {
    printing = false;
    shadedOnes().forEach((figure) => showFrame(figure, Number(sliderOf(figure).value)));
    retheme();
    figures.forEach(({ plot }) => plot && Plotly.relayout(plot, { width: null, autosize: true }));
  });

  // In view first; the others one by one when the browser has time, so that searching and printing find them.
  count();
  if (location.hash === "#all" || !("IntersectionObserver" in window)) return drawAll();
  const watcher = new IntersectionObserver(
    (entries) =>
      entries.forEach(({ isIntersecting, target }) => {
        if (!isIntersecting) return;
        watcher.unobserve(target);
        draw(figures.find(({ element }) => element === target));
      }),
    { rootMargin: "600px 0px" }
  );
  figures.forEach(({ element }) => watcher.observe(element));
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 60));
  const drawRest = () => {
    const next = figures.find((figure) => !figure.drawn && !figure.tried);
    if (!next) return;
    next.tried = true;
    draw(next);
    later(drawRest);
  };
  addEventListener("load", () => later(drawRest));
})();
