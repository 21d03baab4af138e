// Package fanout does many things at the same time and keeps their order.
package fanout
