// Package setup contains the commands about rlm and this machine: config, tiers, doctor, images,
// man, completion and help.
package setup
