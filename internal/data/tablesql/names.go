package tablesql

import (
	"path"
	"slices"
	"strings"
)

// nameSources decides which names the sources keep. A name shared by several sources is kept by
// none of them. The names of contexts, and of tables in databases and workbooks, take precedence
// over the names of files.
func nameSources(sources []Source) []Source {
	own, byFile := map[string]int{}, map[string]int{}
	inside := map[string]bool{} // the tables within sources, except a first one with its file's name
	for _, source := range sources {
		if source.Text != nil {
			for j, table := range source.Text.Tables() {
				name := strings.ToLower(table.Name)
				if j > 0 || !strings.EqualFold(name, findStem(source.File)) {
					inside[name] = true
				}
			}
		}
		for _, name := range source.Names {
			own[strings.ToLower(name)]++
		}
		for _, name := range source.fileNames() {
			byFile[strings.ToLower(name)]++
		}
	}

	mayUse := func(name string) bool {
		name = strings.ToLower(name)
		isReserved := strings.HasPrefix(name, "sqlite_") || name == ""
		return own[name] == 0 && byFile[name] == 1 && !inside[name] && !isReserved
	}

	named := make([]Source, len(sources))
	for i, source := range sources {
		isShared := func(name string) bool { return own[strings.ToLower(name)] > 1 }
		names := slices.DeleteFunc(slices.Clone(source.Names), isShared)
		if stem := findStem(source.File); stem != source.File && mayUse(stem) {
			names = append(names, stem)
		}
		if !mayUse(source.File) {
			source.File = ""
		}

		source.Names = names
		named[i] = source
	}
	return named
}

// fileNames returns the names that a source has because of its file.
func (s Source) fileNames() []string {
	if stem := findStem(s.File); stem != s.File {
		return []string{s.File, stem}
	}
	return []string{s.File}
}

// packings lists the extensions of compressed files.
var packings = []string{".gz", ".bz2", ".xz", ".zst", ".lz4"}

// formats lists the extensions of files that are usually tables.
var formats = []string{
	".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather",
	".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".sqlite", ".sqlite3", ".db",
}

// MayBeTable reports whether a file in a folder is worth opening as a table, by its name.
func MayBeTable(file string) bool {
	base := strings.ToLower(path.Base(file))
	if ext := path.Ext(base); slices.Contains(packings, ext) {
		base = strings.TrimSuffix(base, ext)
	}
	return slices.Contains(formats, path.Ext(base))
}

// findStem returns the name of a file without its folders, the extension of its compression and
// that of its format.
func findStem(file string) string {
	base := path.Base(file)
	if ext := path.Ext(base); slices.Contains(packings, strings.ToLower(ext)) {
		base = strings.TrimSuffix(base, ext)
	}

	stem := strings.TrimSuffix(base, path.Ext(base))
	if stem == "" || file == "" {
		return file
	}
	return stem
}

// unqualified returns all names of a table except the one in its schema.
func (t *table) unqualified() []string {
	if t.File == "" {
		return t.Names
	}
	return append(slices.Clone(t.Names), t.File)
}
