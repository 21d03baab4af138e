// usage: node xlsb.js FILE [shared]
//
// Makes internal/data/tablefiles/testdata/*.xlsb with SheetJS, the package xlsx of npm: no Python
// package writes this format. Version 0.16.9 writes cells as Excel does, and made book.xlsb. Later
// ones write short cells: 0.18.5 made short.xlsb, and shared.xlsb with texts in a table of their own.
const xlsx = require("xlsx");

const rows = [["name", "count", "share", "day", "note", "ok"]];
for (let i = 0; i < 20; i++) {
  rows.push([`Grüße ${i} 漢字`, i, i / 8, new Date(Date.UTC(2024, 2, i + 1)), i % 2 ? `x${i}` : null, i % 3 === 0]);
}

const book = xlsx.utils.book_new();
xlsx.utils.book_append_sheet(book, xlsx.utils.aoa_to_sheet(rows, { cellDates: true }), "Sales");
xlsx.utils.book_append_sheet(book, xlsx.utils.aoa_to_sheet([["key", "value"], ["a", 1e9], ["b", -2.5]]), "Köpfe & more");
if (xlsx.version !== "0.16.9") {
  const odd = xlsx.utils.aoa_to_sheet([["a", "b", "c", "d"], [1, "", "", 4]], { origin: "B3" });
  odd.C4 = { t: "e", v: 0x2a };
  odd.D4 = { t: "z", v: null };
  xlsx.utils.book_append_sheet(book, odd, "Odd");
}
xlsx.writeFile(book, process.argv[2], {
  bookType: "xlsb", compression: true, bookSST: process.argv[3] === "shared",
});
