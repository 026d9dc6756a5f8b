// Return every visible text whose contrast with what is behind it is too small.
() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r, g, b].map((x, i) => a * x + (1 - a) * [R, G, B][i]).concat(1);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    return layers.reduceRight((below, layer) => over(layer, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
  };
  const opacity = (element) => {
    let product = 1;
    for (let e = element; e; e = e.parentElement) product *= Number(getComputedStyle(e).opacity);
    return product;
  };
  const failures = [];
  let checked = 0;
  const check = (element, colour, style, words) => {
    const background = behind(element);
    const [r, g, b, a] = parse(colour);
    const seen = over([r, g, b, a * opacity(element)], background);
    const [high, low] = [luminance(seen), luminance(background)].sort((x, y) => y - x);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    checked += 1;
    if (ratio < (large ? 3 : 4.5)) failures.push(`${ratio.toFixed(2)}: ${words}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!words || !element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    check(element, element.closest("svg") ? style.fill : style.color, style, words);
  }
  for (const input of document.querySelectorAll("input[placeholder]")) {
    const style = getComputedStyle(input, "::placeholder");
    if (input.checkVisibility()) check(input, style.color, style, input.placeholder);
  }
  return { checked, failures };
};
