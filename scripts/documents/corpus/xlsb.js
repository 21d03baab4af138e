// usage: python corpus books | node xlsb.js FOLDER
//
// Writes workbooks as .xlsb with SheetJS 0.18.5, the package xlsx of npm, and truth.json beside them.
// xlsb.zip has the result.
const fs = require("fs");
const xlsx = require("xlsx");

const books = JSON.parse(fs.readFileSync(0, "utf8"));
const truth = {};
for (const [name, { sheets, truth: known }] of Object.entries(books)) {
  const book = xlsx.utils.book_new();
  book.Workbook = { Sheets: [] };
  for (const sheet of sheets) {
    xlsx.utils.book_append_sheet(book, makeSheet(sheet), sheet.name);
    book.Workbook.Sheets.push({ name: sheet.name, Hidden: sheet.hidden ? 1 : 0 });
  }
  xlsx.writeFile(book, `${process.argv[2]}/${name}`, { bookType: "xlsb", compression: true, bookSST: name.charCodeAt(9) % 2 === 0 });
  truth[name] = known;
}
fs.writeFileSync(`${process.argv[2]}/truth.json`, JSON.stringify(truth));

function makeSheet(sheet) {
  const made = { "!merges": sheet.merged.map(([r, c, down, across]) => ({ s: { r, c }, e: { r: r + down - 1, c: c + across - 1 } })) };
  sheet.rows.forEach((row, r) => row.forEach((cell, c) => {
    if (!cell) return;
    const type = { string: "s", number: "n", boolean: "b" }[typeof cell.v];
    made[xlsx.utils.encode_cell({ r, c })] = { t: type, v: cell.v, ...(cell.z === "General" ? {} : { z: cell.z }) };
  }));
  made["!ref"] = xlsx.utils.encode_range({ s: { r: 0, c: 0 }, e: { r: sheet.rows.length - 1, c: sheet.rows[0].length - 1 } });
  if (sheet.hiddenRow !== null) made["!rows"] = Object.assign([], { [sheet.hiddenRow]: { hidden: true } });
  if (sheet.hiddenColumn !== null) made["!cols"] = Object.assign([], { [sheet.hiddenColumn]: { hidden: true } });
  return made;
}
