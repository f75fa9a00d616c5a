// Lists follow the store: where its state has changed, the page is fetched again and its news put in place.
// Whoever has ticked, opened or focused something there is not disturbed.
let at = null;
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch("/live");
    if (!answer.ok || answer.redirected) return;
    const now = await answer.text();
    at ??= now;
    if (now === at || document.querySelector("main :is(:checked, :focus, details[open])")) return;
    const fresh = new DOMParser().parseFromString(await (await fetch(location)).text(), "text/html");
    for (const part of ["header", "main"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
    at = now;
  } catch { /* the server is away: what is shown stays */ }
}, 5000);
