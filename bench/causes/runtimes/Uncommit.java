// A heap that grows and shrinks: phases of much live memory, and System.gc between them.
public class Uncommit { public static void main(String[] a) throws Exception { long t=0;
 for (int r=0;r<25;r++){ byte[][] big=new byte[200][]; for(int i=0;i<200;i++){ big[i]=new byte[1<<20]; t+=big[i].length; } big=null; System.gc(); } System.out.println(t);} }
