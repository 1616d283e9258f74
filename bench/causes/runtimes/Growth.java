import java.util.*;
public class Growth { public static void main(String[] a) { long t=0; Map<Integer,int[]> m=new HashMap<>();
 for (int i=0;i<700000;i++){ m.put(i,new int[200]); t+=i; } System.out.println(t+m.size());} }
