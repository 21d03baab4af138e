// Package wheels finds, fetches and reads Python packages: wheels from an index with PyPI's simple
// API in JSON.
//
// A wheel is hostile. Its digest must match the index or a lock. Its names, sizes and ratios are
// checked before a byte is unpacked, and none of its code runs on the host. Source distributions
// are never used, because their installation runs code.
//
// The resolver is strict and small. It chooses only the newest release with wheels that all
// requirements allow. If that release has no wheel for the target, this is an error, not a reason
// to fall back on an older release. It refuses all requirements that it does not understand, such
// as a requirement by URL.
package wheels
