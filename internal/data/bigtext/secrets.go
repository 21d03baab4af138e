package bigtext

import (
	"path"
	"slices"
	"strings"
)

// Secrets is the reason why files of secrets are left out of a directory.
const Secrets = "files of secrets (to read one, name it in --context or --include)"

// secretFiles are patterns for names of files that contain keys and passwords by convention.
var secretFiles = []string{
	".env", ".env.*", ".netrc", ".pgpass", "*.pem", "*.key", "*.p12", "*.pfx",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
}

// publicFiles match secretFiles, but are templates without secrets.
var publicFiles = []string{".env.example", ".env.sample", ".env.template"}

// IsSecret reports whether a file is one of secrets, by its name.
func IsSecret(name string) bool {
	base := strings.ToLower(path.Base(name))
	isMatch := func(pattern string) bool {
		is, _ := path.Match(pattern, base) // the patterns are well formed
		return is
	}
	return slices.ContainsFunc(secretFiles, isMatch) && !slices.Contains(publicFiles, base)
}
