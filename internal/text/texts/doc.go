// Package texts shortens texts and shows JSON values as text.
package texts
