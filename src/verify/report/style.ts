/** How the report looks, in light and in dark. Red is kept for what is wrong. */
export const STYLE = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1d2939;--muted:#667085;--line:#e4e7ec;--odd:#f8f9fb;--card:#fff;--fault:#98a2b3;
--bad:#d92d20;--bad-bg:#fef3f2;--good:#067647;--good-bg:#ecfdf3;--doubt:#b54708;--doubt-bg:#fffaeb;
--l0:#2e6fdb;--l1:#0e8a7d;--l2:#7a5af8;--l3:#b7791f;--l4:#0b7fab;--l5:#b4339a;--l6:#4d7c0f;--l7:#475467}
@media(prefers-color-scheme:dark){:root{--bg:#0f141c;--fg:#e6eaf0;--muted:#98a2b3;--line:#2a3342;--odd:#141b25;--card:#161e29;--fault:#667085;
--bad:#f97066;--bad-bg:#3a1613;--good:#47cd89;--good-bg:#0d2b1d;--doubt:#fdb022;--doubt-bg:#33230b;
--l0:#4f8cf0;--l1:#2ba99b;--l2:#9b8afb;--l3:#d39a3a;--l4:#36a3cf;--l5:#d45fbd;--l6:#7ba83a;--l7:#8390a5}}
*{box-sizing:border-box}
body{margin:0;padding:24px 28px 48px;background:var(--bg);color:var(--fg);font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:20px;margin:0;font-weight:650;overflow-wrap:anywhere}
h2{font-size:14px;margin:28px 0 8px;font-weight:650}
header{display:flex;align-items:center;gap:14px;flex-wrap:wrap}
.verdict{font-weight:650;padding:3px 12px;border-radius:999px;font-size:13px;white-space:nowrap}
.valid{color:var(--good);background:var(--good-bg)}.invalid{color:var(--bad);background:var(--bad-bg)}.unknown{color:var(--doubt);background:var(--doubt-bg)}
.facts{color:var(--muted);margin:4px 0 0}
.note{background:var(--doubt-bg);color:var(--doubt);border-radius:8px;padding:8px 12px;margin:14px 0 0;overflow-wrap:anywhere}
.violations{list-style:none;margin:14px 0 0;padding:0;display:grid;gap:6px}
.violations button{all:unset;box-sizing:border-box;cursor:pointer;display:flex;gap:10px;align-items:baseline;width:100%;padding:8px 12px;border-radius:8px;background:var(--bad-bg);overflow-wrap:anywhere}
.violations button:hover,.violations button:focus-visible{outline:2px solid var(--bad)}
.violations b{color:var(--bad);white-space:nowrap}
.violations i{font-style:normal;color:var(--muted);margin-left:auto;white-space:nowrap}
.number{flex:none;display:inline-grid;place-items:center;width:19px;height:19px;border-radius:50%;background:var(--bad);color:var(--bg);font-size:11px;font-weight:700}
.bar-top{display:flex;align-items:center;gap:6px;flex-wrap:wrap;margin:28px 0 8px}
.bar-top h2{margin:0 auto 0 0}
.bar-top button{font:inherit;font-size:13px;color:var(--fg);background:var(--card);border:1px solid var(--line);border-radius:7px;padding:3px 11px;cursor:pointer}
.bar-top button:hover{border-color:var(--muted)}
.bar-top .jump{color:var(--bad);border-color:var(--bad);font-weight:600}
.frame{display:grid;grid-template-columns:minmax(70px,max-content) 1fr;border:1px solid var(--line);border-radius:10px;overflow:hidden;background:var(--card)}
.names{border-right:1px solid var(--line);max-width:190px}
.name{display:flex;align-items:center;padding:0 12px;border-top:1px solid var(--line);font-size:13px;font-weight:550}
.name span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
#scroller{overflow-x:auto;overflow-y:hidden}
#timeline{display:block;width:100%;min-width:100%}
.lane{fill:transparent;stroke:var(--line);stroke-width:1}.lane.odd{fill:var(--odd)}
#axis line{stroke:var(--line)}#axis text{fill:var(--muted);font-size:11px}
.fault>rect{fill:var(--fault);opacity:.16;stroke:var(--fault);stroke-width:1}
.fault .struck{fill:url(#strike);opacity:.75;stroke:none}#strike line{stroke:var(--fault);stroke-width:3}
.fault line{stroke:var(--fault);stroke-width:1.6;stroke-dasharray:2 3}
.fault text{fill:var(--muted);font-size:11px;font-weight:600}
#hatch line{stroke:var(--muted);stroke-width:2.4}
.wait{fill:url(#hatch);stroke:var(--muted);stroke-width:.8;opacity:.75}.wait.fail,.wait.info,.wait.busy,.wait.open{opacity:.5;stroke-dasharray:3 2}
.hold{fill:var(--c)}.hold.soft{fill-opacity:.78}.nested{fill:#fff;fill-opacity:.7;stroke:var(--muted);stroke-width:.6}
.token{overflow:hidden}.token text{fill:#fff;font-size:11px;font-weight:650;text-anchor:middle;pointer-events:none}.token.narrow{display:none}
.bar use{stroke:var(--muted);stroke-width:2;fill:none}
.bar:hover .hold,.bar:hover .wait{stroke:var(--fg);stroke-width:1.6}
.lock0{--c:var(--l0)}.lock1{--c:var(--l1)}.lock2{--c:var(--l2)}.lock3{--c:var(--l3)}.lock4{--c:var(--l4)}.lock5{--c:var(--l5)}.lock6{--c:var(--l6)}.lock7{--c:var(--l7)}
.mark.accepted{fill:var(--good)}.mark.refused{stroke:var(--fg);stroke-width:2.4;fill:none}.mark.stale{fill:var(--bad);stroke:var(--card);stroke-width:1.5}
.mark.renewed{stroke:#fff;stroke-width:1.6}.mark.lost{fill:var(--doubt);stroke:var(--card);stroke-width:1}.mark.query{fill:var(--card);stroke:var(--muted);stroke-width:1.6}
.overlap{fill:var(--bad);fill-opacity:.26;stroke:var(--bad);stroke-width:1.4;pointer-events:none}
.flag line{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:4 3;pointer-events:none}
.ring{fill:none;stroke:var(--bad);stroke-width:1.6;pointer-events:none}
.badge{overflow:visible}.badge circle{fill:var(--bad)}.badge text{fill:var(--bg);font-size:11px;font-weight:700;text-anchor:middle}
.flag.lit .overlap{animation:lit 1.2s 2}@keyframes lit{50%{fill-opacity:.7}}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin:10px 2px 0;color:var(--muted);font-size:12.5px;align-items:center}
.legend span{display:inline-flex;align-items:center;gap:6px;max-width:260px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.legend bdi{overflow:hidden;text-overflow:ellipsis}.legend svg{flex:none;overflow:visible}.swatch{width:14px;height:14px;border-radius:3px;background:var(--c);flex:none}
table{border-collapse:collapse;width:100%;max-width:860px;font-size:13px}
th,td{text-align:left;padding:6px 16px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--muted);font-weight:550;white-space:nowrap}.n{text-align:right;font-variant-numeric:tabular-nums;width:80px;padding-right:28px}
td.v{white-space:nowrap;font-weight:600;width:120px}.v.good{color:var(--good)}.v.bad{color:var(--bad)}.v.none{color:var(--muted);font-weight:400}
#tip{position:fixed;z-index:2;display:none;max-width:420px;padding:8px 11px;border-radius:8px;background:var(--fg);color:var(--bg);font-size:12.5px;line-height:1.45;white-space:pre-line;overflow-wrap:anywhere;pointer-events:none;box-shadow:0 4px 16px #0004}
#tip::first-line{font-weight:650}
`;
