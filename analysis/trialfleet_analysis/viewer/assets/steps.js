(function () {
  "use strict";
  var form = document.getElementById("find");
  if (!form) { return; }
  var field = document.getElementById("find-text"), count = document.getElementById("find-count");
  var rows = document.querySelectorAll(".steps tbody tr"), boxes = form.querySelectorAll("input[type=checkbox]");
  function filter() {
    var wanted = field.value.trim().toLowerCase(), kinds = {}, shown = 0, turns = 0, all = true;
    boxes.forEach(function (box) { kinds[box.value] = box.checked; all = all && box.checked; });
    rows.forEach(function (row) {
      var some = 0;
      row.querySelectorAll(".step").forEach(function (step) {
        var holds = wanted && step.textContent.toLowerCase().indexOf(wanted) >= 0;
        step.hidden = !kinds[step.dataset.kind] || (wanted && !holds);
        some += step.hidden ? 0 : 1;
        if (step.tagName === "DETAILS") { step.open = Boolean(holds); }
      });
      row.querySelectorAll("details:not(.step)").forEach(function (run) {
        run.hidden = !run.querySelector(".step:not([hidden])");
        run.open = Boolean(wanted);
      });
      row.hidden = !some && !(all && !wanted);
      shown += some;
      turns += row.hidden ? 0 : 1;
    });
    count.textContent = wanted || !all ? shown + (shown === 1 ? " step in " : " steps in ") + turns + " of " + rows.length + " turns" : "";
  }
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; filter(); }
  });
})();
