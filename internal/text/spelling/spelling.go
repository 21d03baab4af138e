// Package spelling suggests the closest known name for a misspelled one.
package spelling

// maxName bounds the names to compare, in bytes: the work grows with the product of both lengths.
const maxName = 100

// Nearest returns the known name that needs the fewest changes, or an empty string if none is
// close.
func Nearest(name string, known []string) string {
	if len(name) > maxName {
		return ""
	}
	best, meant := len(name)/3+2, ""
	for _, candidate := range known {
		if d := Distance(name, candidate); d < best {
			best, meant = d, candidate
		}
	}
	return meant
}

// Distance returns the number of letters to insert, remove, replace or swap with a neighbour to
// turn a into b (optimal string alignment).
func Distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}

	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}

	return rows[len(a)][len(b)]
}
