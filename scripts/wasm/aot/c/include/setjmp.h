typedef int jmp_buf[1]; /* for exceptions, which no guest has */
