// Package wheels finds, fetches and reads Python packages: wheels of an index that speaks
// PyPI's simple API as JSON.
//
// A wheel is hostile. Its digest must be that of the index or of a lock, its names, sizes and
// ratios are bounded before a byte is unpacked, and none of its code runs on the host.
// Source distributions are never used, because their installation runs code.
//
// The resolver is strict and small. It takes the newest release with wheels that all requirements allow,
// and no other: a release without a wheel for the target is an error, not a reason to go back
// to an older release. What it does not understand, such as a requirement by URL, it refuses.
package wheels
