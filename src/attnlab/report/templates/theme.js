// Runs before anything is painted, so that a chosen theme does not flash. "#dark" or "#light" in the address wins.
(() => {
  "use strict";
  let chosen = /^#(dark|light)$/.test(location.hash) ? location.hash.slice(1) : null;
  try {
    chosen = chosen || localStorage.getItem("attnlab-theme");
  } catch {
    // Some browsers keep no storage for files; the system's preference then decides.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
