// Draws the figures when they come into view, in the colours of the theme, and serves the buttons.
(() => {
  "use strict";
  const body = document.body;
  const root = document.documentElement;
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const toLight = Object.fromEntries(Object.entries(palette).map(([light, dark]) => [dark, light]));
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const handheld = matchMedia("(pointer: coarse), (max-width: 560px)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
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
    if (figure.plot && typeof Plotly !== "undefined") {
      try {
        const { data, layout } = specOf(figure).plotly;
        figure.dark = isDark();
        const shown = figure.dark ? recolored({ data, layout }, palette) : { data, layout: { ...layout } };
        if (handheld.matches) {
          shown.layout.dragmode = false; // a finger on the figure scrolls the page
          shown.layout.height += 64; // and the legend needs more than one line
        }
        figure.element.dataset.drawn = ""; // from here on the drawing that stands still is hidden
        Plotly.newPlot(figure.plot, shown.data, shown.layout, config).then(() => {
          const button = figure.element.querySelector("[data-play]");
          if ("plays" in figure.element.dataset && !still.matches) {
            play(figure, button, figure.element.querySelector("[data-frame]"));
          }
        });
      } catch (error) {
        figure.drawn = false;
        delete figure.element.dataset.drawn;
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
  const saveText = (name, text) => saveBlob(name, new Blob([text], { type: "text/csv;charset=utf-8" }));
  function saveBlob(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  // A table has no drawing of the script's: its image stands among the data.
  async function saveStill(text, format, filename) {
    const source = new Blob([text], { type: "image/svg+xml;charset=utf-8" });
    if (format === "svg") return saveBlob(`${filename}.svg`, source);
    const image = new Image();
    image.src = URL.createObjectURL(source);
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob((blob) => saveBlob(`${filename}.png`, blob), "image/png");
  }
  async function save(figure, format) {
    const filename = figure.element.dataset.figure;
    const spec = specOf(figure);
    if (format === "csv") return saveText(`${filename}.csv`, csvOf(spec));
    if (spec.still) return saveStill(spec.still, format, filename);
    const image = imageOf(figure);
    const size = { width: 900, height: image.layout.height, scale: format === "png" ? 2 : 1 };
    return Plotly.downloadImage({ ...image, config }, { format, filename, ...size });
  }

  // What a reader has chosen is printed as it is, all else as the drawing that stands still.
  const touch = ({ element }) => (element.dataset.touched = "");
  const touchedOnes = () => figures.filter(({ element, plot }) => plot && "touched" in element.dataset);
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
    select?.addEventListener("change", () => {
      draw(figure);
      touch(figure);
      choose(figure, Number(select.value));
    });
    const slider = element.querySelector("[data-frame]");
    const button = element.querySelector("[data-play]");
    slider?.addEventListener("input", () => {
      draw(figure);
      touch(figure);
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

  // A figure in a folded section is drawn without knowing its width: fit it when it is shown.
  const folded = [...document.querySelectorAll("section > details")];
  for (const fold of folded) {
    fold.addEventListener("toggle", () => {
      if (!fold.open || printing) return;
      figures.filter(({ element }) => fold.contains(element)).forEach((figure) => {
        draw(figure);
        if (figure.plot) Plotly.Plots.resize(figure.plot);
      });
    });
  }

  const PRINTED_WIDTH = 660; // A4 less its margins, in CSS pixels
  const shadedOnes = () => figures.filter(({ element }) => element.dataset.kind === "shaded");
  const sliderOf = ({ element }) => element.querySelector("[data-frame]");
  addEventListener("beforeprint", () => {
    printing = true;
    folded.forEach((fold) => (fold.open = true));
    shadedOnes().forEach((figure) => showFrame(figure, Number(sliderOf(figure).max))); // paper has the last step
    retheme();
    touchedOnes().forEach(({ plot }) => Plotly.relayout(plot, { width: PRINTED_WIDTH, autosize: false }));
  });
  addEventListener("afterprint", () => {
    printing = false;
    shadedOnes().forEach((figure) => showFrame(figure, Number(sliderOf(figure).value)));
    retheme();
    touchedOnes().forEach(({ plot }) => Plotly.relayout(plot, { width: null, autosize: true }));
  });

  // What a term means, where it is pointed at or reached by keyboard.
  const tip = document.getElementById("tip");
  function explain({ target }) {
    const marked = target.closest?.("[data-term]");
    if (!tip || !marked) return hideTip();
    const found = marked.dataset.term.split(" ").map((name) => document.getElementById(`about-${name}`));
    tip.replaceChildren(...found.filter(Boolean).map((element) => element.cloneNode(true)));
    tip.querySelectorAll("[id]").forEach((element) => element.removeAttribute("id"));
    tip.hidden = false;
    marked.setAttribute("aria-describedby", "tip");
    const place = marked.getBoundingClientRect();
    const left = Math.min(Math.max(8, place.left), innerWidth - tip.offsetWidth - 8);
    const above = place.bottom + tip.offsetHeight + 12 > innerHeight;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${scrollY + (above ? place.top - tip.offsetHeight - 6 : place.bottom + 6)}px`;
  }
  function hideTip() {
    if (!tip || tip.hidden) return;
    tip.hidden = true;
    document.querySelectorAll("[aria-describedby=tip]").forEach((one) => one.removeAttribute("aria-describedby"));
  }
  if (tip) {
    document.addEventListener("mouseover", explain);
    document.addEventListener("focusin", explain);
    document.addEventListener("keydown", ({ key }) => key === "Escape" && hideTip());
  }

  // A line of a derivation lights its curve.
  function light(figure, name) {
    if (!figure?.plot || !figure.drawn) return;
    const opacity = figure.plot.data.map((trace) => (!name || trace.name === name ? 1 : 0.15));
    Plotly.restyle(figure.plot, { opacity });
  }
  document.querySelectorAll("[data-lights]").forEach((line) => {
    const figure = figures.find(({ element }) => element.dataset.figure === line.dataset.of);
    const on = () => light(figure, line.dataset.lights);
    const off = () => light(figure, "");
    line.addEventListener("mouseenter", on);
    line.addEventListener("focusin", on);
    line.addEventListener("mouseleave", off);
    line.addEventListener("focusout", off);
  });

  // The ledger: what is asked for stays, the rest is hidden.
  const ledger = document.querySelector("[data-ledger]");
  if (ledger) {
    const rows = [...ledger.querySelectorAll("[data-row]")];
    const filters = [...document.querySelectorAll("[data-filter]")];
    const search = document.querySelector("[data-search]");
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        const fits = filters.every(({ value, dataset }) => !value || row.dataset[dataset.filter] === value);
        row.hidden = !(fits && words.every((word) => text.includes(word)));
      });
      const shown = rows.filter((row) => !row.hidden).length;
      document.querySelector("[data-shown]").textContent = `${shown} of ${rows.length}`;
    };
    filters.forEach((select) => select.addEventListener("change", filter));
    search.addEventListener("input", filter);
    filter();
  }

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
