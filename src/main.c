#include <stdio.h>

int main(void)
{
    puts(INSIST_VERSION);
    return 0;
}
