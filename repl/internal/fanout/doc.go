// Package fanout runs many operations concurrently and keeps their order.
package fanout
