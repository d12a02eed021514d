(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg";
  var FONT = ["font-family", "font-size", "font-weight"];
  var STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "vector-effect", "text-anchor"].concat(FONT);
  function make(tag, attributes, text) {
    var made = document.createElementNS(SVG, tag);
    Object.keys(attributes).forEach(function (name) { made.setAttribute(name, attributes[name]); });
    if (text) { made.textContent = text; }
    return made;
  }
  function style(from, to) {
    var computed = getComputedStyle(from);
    to.removeAttribute("class");
    STYLES.forEach(function (name) { to.setAttribute(name, computed.getPropertyValue(name)); }); // the policy has no style attributes
    Array.from(from.children).forEach(function (child, n) { style(child, to.children[n]); });
  }
  function drawing(plot, origin) {
    var place = plot.getBoundingClientRect(), copy = plot.cloneNode(true);
    style(plot, copy);
    copy.setAttribute("overflow", "visible");
    [["x", place.left - origin.left], ["y", place.top - origin.top], ["width", place.width], ["height", place.height]]
      .forEach(function (pair) { copy.setAttribute(pair[0], pair[1].toFixed(2)); });
    return copy;
  }
  function lines(node) {
    var found = [], words = /\S+/g, text = node.data, range = document.createRange(), word;
    while ((word = words.exec(text))) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      var place = range.getBoundingClientRect(), last = found[found.length - 1];
      if (last && Math.abs(last.place.top - place.top) < 2) { last.text += " " + word[0]; }
      else if (place.width) { found.push({ text: word[0], place: place }); }
    }
    return found;
  }
  function texts(figure, origin) {
    var found = [], walker = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), node;
    while ((node = walker.nextNode())) {
      if (node.parentElement.closest("svg, button")) { continue; }
      var computed = getComputedStyle(node.parentElement), size = parseFloat(computed.fontSize);
      lines(node).forEach(function (line) {
        var shown = make("text", {
          x: (line.place.left - origin.left).toFixed(2), y: (line.place.top - origin.top + (line.place.height + 0.72 * size) / 2).toFixed(2),
          fill: computed.color
        }, line.text);
        FONT.forEach(function (name) { shown.setAttribute(name, computed.getPropertyValue(name)); });
        found.push(shown);
      });
    }
    return found;
  }
  function keys(figure, origin) {
    return Array.from(figure.querySelectorAll(".key")).map(function (key) {
      var place = key.getBoundingClientRect(), computed = getComputedStyle(key), x = place.left - origin.left, y = place.top - origin.top;
      var border = parseFloat(computed.borderTopWidth);
      var painted = { fill: computed.backgroundColor, stroke: border ? computed.borderTopColor : "none", "stroke-width": border };
      if (key.classList.contains("like") && !key.classList.contains("bar")) {
        var w = place.width / 2, h = place.height / 2;
        return make("path", Object.assign({ d: "M" + (x + w) + " " + y + "l" + w + " " + h + "l" + -w + " " + h + "l" + -w + " " + -h + "z" }, painted));
      }
      var rx = computed.borderRadius === "50%" ? place.width / 2 : 0;
      return make("rect", Object.assign({ x: x, y: y, width: place.width, height: place.height, rx: rx }, painted));
    });
  }
  function whole(figure) {
    var origin = figure.getBoundingClientRect(), paper = getComputedStyle(document.body).backgroundColor;
    var root = make("svg", { xmlns: SVG, width: Math.ceil(origin.width), height: Math.ceil(origin.height), viewBox: "0 0 " + Math.ceil(origin.width) + " " + Math.ceil(origin.height) });
    root.append(make("rect", { width: "100%", height: "100%", fill: paper }));
    figure.querySelectorAll("svg").forEach(function (plot) { if (!plot.parentElement.closest("svg")) { root.append(drawing(plot, origin)); } });
    root.append.apply(root, keys(figure, origin).concat(texts(figure, origin)));
    return new XMLSerializer().serializeToString(root);
  }
  document.querySelectorAll("figure").forEach(function (figure) {
    if (!figure.querySelector("svg") || figure.querySelector("table")) { return; }
    var button = document.createElement("button"), name = (figure.id || "figure").replace("figure-", "");
    button.type = "button";
    button.className = "save";
    button.textContent = "Save as SVG";
    button.setAttribute("aria-label", "Save as SVG: " + name);
    button.addEventListener("click", function () {
      var link = document.createElement("a");
      button.hidden = true;
      link.href = URL.createObjectURL(new Blob([whole(figure)], { type: "image/svg+xml" }));
      button.hidden = false;
      link.download = name + ".svg";
      link.click();
      URL.revokeObjectURL(link.href);
    });
    figure.append(button);
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (one) { one.open = true; });
  });
})();
