// Package testing groups the packages that only tests and scripts import. Tiersuite, gosuite,
// storetest and escapes are the suites that each tier and store must pass. Archtest checks the code
// against docs/architecture.md. The other packages provide what tests need: models, browsers,
// indexes, small disks. The suite for authors of other tiers is tiers/tiertest.
package testing
